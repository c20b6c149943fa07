"""The page's style and the shapes of its outcome classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Look(NamedTuple):
    """How a class is drawn: colours of the tile and its mark, and the mark's SVG in 16 x 16."""

    tile: str
    mark: str
    shape: str


_LINE = 'fill="none" stroke="{0}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"'

LOOKS: Mapping[str, Look] = {
    "compromised": Look("#b3261e", "#ffffff", f'<path {_LINE} d="M4.5 4.5l7 7m0-7l-7 7"/>'),
    "unsafe_baseline": Look("#6a1b9a", "#ffffff", '<path fill="{0}" d="M3 4.5h10l-5 8z"/>'),
    "unresolved": Look(
        "#5f6368",
        "#ffffff",
        f'<path {_LINE} d="M5.5 6a2.5 2.5 0 1 1 3.6 2.2Q8 8.8 8 9.8M8 12.4v.1"/>',
    ),
    "attempted": Look("#9c4a00", "#ffffff", '<path fill="{0}" d="M3 11.5h10l-5-8z"/>'),
    "incapable": Look("#37474f", "#ffffff", f'<circle {_LINE} cx="8" cy="8" r="4"/>'),
    "unexposed": Look("#dadce0", "#1a1a1a", '<circle fill="{0}" cx="8" cy="8" r="1.8"/>'),
    "derailed": Look("#7a5c00", "#ffffff", f'<path {_LINE} d="M8 3.5l4.5 4.5-4.5 4.5-4.5-4.5z"/>'),
    "swayed": Look("#ad1457", "#ffffff", '<path fill="{0}" d="M8 3l5 5-5 5-5-5z"/>'),
    "resisted": Look("#0b57a4", "#ffffff", '<circle fill="{0}" cx="8" cy="8" r="4.3"/>'),
}
"""The look of every outcome class; the shapes are those of the terminal report."""

LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "ink": "#1a1a1a",
    "soft": "#595959",
    "line": "#c9c9c9",
    "band": "#f3f3f3",
    "warn": "#fff2cc",
    "warn-ink": "#4d3800",
    "bad": "#a01b14",
    "good": "#1b5e20",
    "mark": "#0b57a4",
}
DARK: Mapping[str, str] = {
    "paper": "#16181c",
    "ink": "#ececec",
    "soft": "#b3b3b3",
    "line": "#4a4d52",
    "band": "#23262b",
    "warn": "#3d3008",
    "warn-ink": "#ffe6a3",
    "bad": "#ff9c94",
    "good": "#8fd694",
    "mark": "#8ab8ee",
}


def _colours(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


STYLE = f"""
:root {{ color-scheme: light dark; {_colours(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_colours(DARK)} }} }}
* {{ box-sizing: border-box; }}
body {{ background: var(--paper); color: var(--ink); margin: 0 auto; max-width: 72rem;
  padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.6rem; margin: .5rem 0; }}
h2 {{ font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); }}
h3 {{ font-size: 1.05rem; margin: 1.5rem 0 .3rem; }} h4 {{ font-size: 1rem; margin: 1rem 0 .3rem; }}
p, ul {{ margin: .4rem 0 .8rem; max-width: 60rem; }}
a {{ color: var(--mark); }} nav a {{ margin-right: 1rem; display: inline-block; }}
.soft, caption {{ color: var(--soft); font-size: .9rem; }}
.bad {{ color: var(--bad); font-weight: 600; }} .good {{ color: var(--good); font-weight: 600; }}
.warning {{ background: var(--warn); color: var(--warn-ink); border-left: .3rem solid currentColor;
  padding: .5rem .8rem; margin: .4rem 0; }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: 1rem; }}
.card {{ background: var(--band); padding: .8rem 1rem; }}
.card h3 {{ margin: 0; }} .card p {{ margin: 0; }} .big {{ font-size: 1.8rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; padding: .3rem 0; }}
th, td {{ border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left;
  vertical-align: middle; }}
thead th {{ color: var(--soft); font-weight: 600; vertical-align: bottom; }}
td {{ min-width: 7rem; }} tbody th {{ font-weight: 600; min-width: 8rem; }}
.n {{ text-align: right; min-width: 0; }} td.n {{ white-space: nowrap; }}
th.n {{ overflow-wrap: normal; }}
.plot {{ width: 45%; min-width: 11rem; padding: 0 .6rem; }}
svg {{ display: block; overflow: visible; }} .plot svg {{ width: 100%; }}
svg text {{ fill: var(--soft); font: 12px system-ui, sans-serif; }}
.grid {{ stroke: var(--line); }} .bar {{ stroke: var(--mark); stroke-width: 4; }}
.bounds {{ stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 3 3; }}
.dot {{ fill: var(--paper); stroke: var(--mark); stroke-width: 2.5; }}
.edge {{ stroke: var(--line); stroke-width: 1; fill: none; }}
.key svg {{ display: inline-block; vertical-align: -.2em; margin-right: .3rem; }}
.key li {{ display: inline-block; margin-right: 1.2rem; }} .key {{ padding: 0; list-style: none; }}
details {{ border: 1px solid var(--line); padding: .4rem .8rem; margin: .6rem 0; }}
details details {{ margin: .3rem 0; }}
summary {{ cursor: pointer; }}
pre {{ background: var(--band); white-space: pre-wrap; padding: .5rem .7rem; margin: .3rem 0;
  font: .85rem/1.45 ui-monospace, monospace; max-height: 30rem; overflow: auto;
  unicode-bidi: plaintext; }}
code {{ font: .85rem ui-monospace, monospace; }}
.sides {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr));
  gap: 0 1.2rem; }}
.sides > * {{ min-width: 0; }}
.call {{ border-left: .25rem solid var(--line); padding-left: .6rem; margin: .5rem 0; }}
.call.left, .call.right, .call.changed {{ border-color: var(--mark); }}
.call.breaks {{ border-color: var(--bad); }} .call p {{ margin: 0; }}
.hidden {{ position: absolute; width: 0; height: 0; }}
:focus-visible {{ outline: 2px solid var(--mark); outline-offset: 2px; }}
@media (max-width: 40rem) {{ th, td {{ padding: .25rem .35rem; }} body {{ padding: .6rem; }} }}
@media print {{
  :root {{ {_colours(LIGHT)} color-scheme: light; }}
  body {{ max-width: none; font-size: 10pt; }} nav {{ display: none; }}
  svg, .card, .warning, pre {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  pre {{ max-height: none; }} .wide {{ overflow: visible; }}
  tr, .card, .warning, .call {{ break-inside: avoid; }} h2, h3, h4 {{ break-after: avoid; }}
  details:not(.long)::details-content {{ content-visibility: visible; block-size: auto; }}
}}
"""
"""The one style sheet; the page allows no other and no style attribute."""

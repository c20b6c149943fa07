"""The report as one self-contained page: no script, nothing from outside."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON
from impact_twin.report.html import charts, details, overview
from impact_twin.report.html.flips import flips
from impact_twin.report.html.style import STYLE
from impact_twin.report.html.words import count, line, name

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

POLICY = "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
"""What the page may load: its own style sheet, by its digest."""

_PLACES = {
    "headline": "Headline",
    "forest": "Intervals",
    "trials": "Trials",
    "classes": "Classes",
    "diversity": "Stability",
    "exposure": "Exposure",
    "order": "Order",
    "cost": "Cost",
    "flips": "Why pairs flip",
    "identity": "Identity",
    "limits": "Limits",
}


def html_page(report: Mapping[str, JSON], suite: Suite | None) -> str:
    """Return a report as a page that loads nothing and runs nothing, ending with a newline.

    Texts are clipped where they are long; nothing in them is markup.

    Args:
        report: A report that keeps to its schema.
        suite: Its suite, for what only it knows; None when it is not at hand.
    """
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title in _PLACES.items())
    body = (
        _head(report),
        overview.warnings(report),
        f'<nav aria-label="Sections">{links}</nav>',
        overview.headline(report),
        overview.forest(report),
        overview.heat(report),
        overview.classes(report),
        details.diversity(report),
        details.exposure(report),
        details.order(report),
        details.cost(report),
        flips(report, suite),
        details.identity(report),
        details.limits(report),
    )
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    title = f"ImpactTwin: {line(report['identity']['agent']['name'], 80)}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(hash=digest)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body>{charts.symbols()}<main>\n"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def _head(report: Mapping[str, JSON]) -> str:
    identity, plan = report["identity"], report["plan"]
    n = report["summary"]["aggregate"]["n"]
    return (
        f"<header><h1>ImpactTwin: {name(identity['agent']['name'])}</h1>"
        f"<p>{name(identity['suite']['id'])}: {count(plan['trials'], 'trial')} of "
        f"{count(len(plan['pairs']), 'pair')}, {count(n, 'pair-trial')}, {2 * n:,} cases. "
        f"Kind of agent: {name(identity['agent']['kind'])}"
        f", seed {identity['run']['seed']}, {line(identity['run']['isolation'])} isolation, "
        f"concurrency {', '.join(map(str, identity['run']['concurrency'])) or 'none'}, "
        f"impact-twin {name(identity['versions']['impact_twin'])}, planned "
        f"{name(plan['created'])}.</p></header>"
    )

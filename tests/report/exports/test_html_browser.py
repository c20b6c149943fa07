"""The page in headless Chromium: what it looks like to a browser, not to a parser."""

import html
import json
import re
import shutil
import subprocess

import pytest

from impact_twin.report.evidence import suite_of_report
from impact_twin.report.html.page import html_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr", "--disable-dev-shm-usage"),
)
WIDTHS = (400, 1100)

# Each page stands in a frame without scripts of its own; the page around it looks into it.
PROBE = """
<!DOCTYPE html><meta charset="utf-8"><body>%s<script>
addEventListener('load', () => {
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const inner = frame.contentDocument, root = inner.documentElement;
    const size = inner.querySelector('h1').getBoundingClientRect();
    const dark = frame.contentWindow.matchMedia('(prefers-color-scheme: dark)').matches;
    return {
      name: frame.name, title: inner.title, dark,
      overflow: root.scrollWidth - root.clientWidth,
      active: inner.querySelectorAll('script,img,link,iframe,object,embed,form,[style]').length,
      handlers: [...inner.querySelectorAll('*')].filter(
        item => [...item.attributes].some(each => each.name.startsWith('on'))).length,
      text: inner.body.textContent,
      styled: frame.contentWindow.getComputedStyle(inner.body).backgroundColor,
      shown: size.width > 0 && size.height > 0,
      tiles: [...inner.querySelectorAll('#trials use')].filter(
        item => item.getBoundingClientRect().width > 10).length,
      bars: [...inner.querySelectorAll('#forest .bar')].filter(
        item => item.getBoundingClientRect().width > 0).length,
      thin: [...inner.querySelectorAll('th:not(.n), td:not(.n)')].map(
        item => item.getBoundingClientRect()).filter(
          box => box.width > 0 && box.width < 40 && box.height > 90).length,
      closed: [...inner.querySelectorAll('details')].filter(item => !item.open).length,
    };
  });
  document.body.textContent = JSON.stringify(found);
});
</script>
"""


def browse(folder, name, content, *options):
    """Load a page; return what the browser printed and what it complained of."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the page was not looked at in a browser")
    path = folder / name
    path.write_text(content, encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'user'}", *options, path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def page_of(report):
    return html_page(report, suite_of_report(report))


@pytest.fixture(scope="module", params=[False, True], ids=["light", "dark"])
def probed(reports, tmp_path_factory, request):
    """What a browser sees of pages of every kind at every width."""
    frames = "".join(
        f'<iframe name="{name} {width}" width="{width}" height="800" '
        f'srcdoc="{html.escape(page_of(reports[name]))}"></iframe>'
        for name in ("demo", "hostile", "nothing ran", "mixed", "long")
        for width in WIDTHS
    )
    options = ["--dump-dom"] + ["--blink-settings=preferredColorScheme=0"] * request.param
    folder = tmp_path_factory.mktemp("browser")
    out, complaints = browse(folder, "probe.html", PROBE % frames, *options)
    body = re.search(r"<body>(.*)</body>", out, re.DOTALL)[1]
    return {item["name"]: item for item in json.loads(html.unescape(body))}, complaints, request


def test_pages_are_styled_and_whole_at_every_width(probed, reports):
    found, complaints, request = probed
    assert not complaints
    assert len(found) == 10
    for name, item in found.items():
        report = reports[name.rsplit(" ", 1)[0]]
        assert item["shown"], name
        assert item["overflow"] <= 0, name
        assert item["thin"] == 0, name
        assert item["dark"] == request.param
        assert item["styled"] == ("rgb(22, 24, 28)" if request.param else "rgb(255, 255, 255)")
        assert item["tiles"] >= len(report["pair_trials"])
        assert item["closed"] > len(report["plan"]["pairs"])
    assert found["demo 400"]["bars"] == found["demo 1100"]["bars"] > 15


def test_hostile_text_is_shown_and_does_nothing(probed):
    found, _, _ = probed
    for width in WIDTHS:
        item = found[f"hostile {width}"]
        assert item["active"] == item["handlers"] == 0
        assert item["title"].startswith("ImpactTwin: <script>")
        assert "<script>document.title='broken'</script>" in item["text"]
        assert "onload=alert(1)" in item["text"]


def test_a_page_by_itself_has_no_complaints_and_prints(reports, tmp_path):
    pdf = tmp_path / "page.pdf"
    _, complaints = browse(
        tmp_path, "page.html", page_of(reports["hostile"]), f"--print-to-pdf={pdf}"
    )
    assert not complaints
    assert pdf.read_bytes().startswith(b"%PDF")


def test_a_script_in_the_page_would_be_stopped(reports, tmp_path):
    """The policy by itself, were a text ever to become markup."""
    page = page_of(reports["demo"]).replace(
        "</main>", "<script>document.title='broken'</script><img src='x.png'></main>"
    )
    out, complaints = browse(tmp_path, "page.html", page, "--dump-dom")
    assert "<title>ImpactTwin: demo:wavering</title>" in out
    assert len(complaints) >= 2
    assert all("Content Security Policy" in line for line in complaints)

from html.parser import HTMLParser

import pytest

from impact_twin.audit.document import Document, Section, Table, to_html, to_text

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e[bold]x[/bold]&\"'"


def sample(cell=HOSTILE, rows=1):
    table = Table("Rows " + cell, ("name " + cell, ">n"), ((cell, "1"),) * rows, most=5)
    section = Section("Heading " + cell, ("Text " + cell,), (table,), ("Note " + cell,))
    return Document("Title " + cell, ("Lead " + cell,), (section,))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_hostile_text_stays_text_in_both_forms():
    text, page = to_text(sample()), to_html(sample())
    for shown in (text, page):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\\x1b[31m\\u202e" in shown.replace("\n", "")
    assert "<script" not in page.lower()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_page_is_well_formed_accessible_and_loads_nothing():
    page = to_html(sample())
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    names = [tag for tag, _ in tags.seen]
    assert not {"script", "link", "img", "iframe"} & set(names)
    assert "http://" not in page
    assert "https://" not in page
    attributes = dict(tags.seen)
    assert attributes["html"] == {"lang": "en"}
    assert ("th", {"scope": "row"}) in tags.seen
    assert any(tag == "th" and found.get("scope") == "col" for tag, found in tags.seen)
    assert names.count("caption") == 1
    policy = next(found for tag, found in tags.seen if "http-equiv" in found)
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("cell", ["short", "long " * 60, "x" * 300, "a_b.c/d:" * 40, HOSTILE * 9])
def test_text_stays_within_the_width_and_loses_nothing(width, cell):
    text = to_text(sample(cell), width)
    assert max(map(len, text.splitlines())) <= width
    lead = to_text(Document("T", (cell,)), width)
    squeezed = "".join(lead.split())
    assert "".join(to_text(Document("T", (cell,)), 10_000).split()) == squeezed


def test_a_long_table_says_how_much_is_left_out_and_the_page_has_all():
    document = sample("row", rows=12)
    assert "... and 7 more" in to_text(document)
    assert to_html(document).count("<tr>") == 13


def test_numbers_are_aligned_to_the_right():
    table = Table("T", ("name", ">count"), (("a", "1"), ("b", "1,000")))
    text = to_text(Document("D", (), (Section("S", (), (table,)),)))
    assert "a         1\nb     1,000" in text

"""What the README promises: its commands, and the output that it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = re.compile(
    r"<!-- output of: impact-twin (?P<arguments>.+?) -->\n```\n(?P<text>.*?)```\n", re.DOTALL
)


def output(folder: Path, arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "impact_twin", *arguments.split()],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "80",
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    return re.sub(r"planned \d{4}-\S+Z", "planned 2026-11-30T12:00:00Z", done.stdout)


@pytest.mark.parametrize(
    "shown", list(SHOWN.finditer(README)), ids=lambda match: match["arguments"]
)
def test_the_output_shown_is_what_the_command_prints(shown, tmp_path):
    assert output(tmp_path, shown["arguments"]) == shown["text"]


def test_the_check_script_calls_the_test_command_of_the_readme():
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for part in commands[1].split(" && "):
        assert part in script


def test_every_link_of_the_docs_leads_somewhere():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        prose = re.sub(
            r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            if not target.startswith(("http://", "https://", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_no_generated_table_is_empty():
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        empty = re.findall(r"<!-- table: (.+?) -->\n(?:<!-- end|\s*\Z)", text)
        assert not empty, f"{page.name}: {empty}"


if __name__ == "__main__":
    # Writes the output shown anew: python tests/test_readme.py
    import tempfile

    text = SHOWN.sub(
        lambda match: match[0].replace(
            f"```\n{match['text']}```",
            f"```\n{output(Path(tempfile.mkdtemp()), match['arguments'])}```",
        ),
        README,
    )
    (ROOT / "README.md").write_text(text, encoding="utf-8")

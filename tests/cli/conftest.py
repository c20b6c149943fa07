import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Tool:
    """Runs the real command in a subprocess, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments, env=None, stdin=None, timeout=120):
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(env),
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=timeout,
        )

    def command(self, *arguments):
        return [sys.executable, "-m", "impact_twin", *map(str, arguments)]

    def environment(self, env=None):
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "80",
            **(env or {}),
        }

    def report(self, run="run"):
        return json.loads((self.folder / run / "report.json").read_text(encoding="utf-8"))

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


@pytest.fixture
def tool(tmp_path):
    return Tool(tmp_path)


@pytest.fixture
def agent(tmp_path):
    """Write a module `mine.py` whose `build` is what the test gives."""

    def write(source: str) -> str:
        (tmp_path / "mine.py").write_text(source, encoding="utf-8")
        return "mine:build"

    return write

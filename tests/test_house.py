"""The house rules that a test can hold: who imports whom, and what start-up may cost."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import impact_twin

PACKAGE = Path(impact_twin.__file__).parent
ROOMS = (
    "procurement",
    "agents",
    "trials",
    "statistics",
    "report",
    "proofrun",
    "leaderboard",
    "audit",
    "cli",
)
FEEDS = {
    "procurement": set(),
    "agents": {"procurement"},
    "trials": {"procurement", "agents"},
    "statistics": set(),
    "report": {"procurement", "agents", "trials", "statistics"},
    "proofrun": {"procurement", "agents", "trials", "statistics", "report"},
    "leaderboard": {"statistics"},
    "audit": {"statistics"},
    "cli": set(ROOMS),
}
HEAVY = ("rich", "numpy", "jsonschema", "dspy", "agentdojo", "pydantic", "litellm", "yaml")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
            if node.module == "impact_twin":
                names += [f"impact_twin.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "impact_twin" and len(parts) > 1 and parts[1] in ROOMS:
                found.add(parts[1])
    return found


def test_every_folder_is_a_known_room():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_rooms_that_feed_it(room):
    for path in sorted((PACKAGE / room).rglob("*.py")):
        extra = imported_rooms(path) - FEEDS[room] - {room}
        assert not extra, f"{path.relative_to(PACKAGE)} imports {sorted(extra)}"


def test_the_statistics_room_imports_nothing_of_ours_but_itself():
    for path in sorted((PACKAGE / "statistics").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("impact_twin"):
                assert node.module.startswith("impact_twin.statistics"), path


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys\n"
        "from impact_twin.cli.main import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit as err:\n"
        "    assert not err.code, err.code\n"
        f"print('LOADED', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_no_source_file_outgrows_a_reader():
    long = {
        str(path.relative_to(PACKAGE)): count
        for path in PACKAGE.rglob("*.py")
        if (count := path.read_text(encoding="utf-8").count("\n")) > 420
    }
    assert not long

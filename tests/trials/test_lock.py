import os
import subprocess
import sys

import pytest

from impact_twin.trials.lock import FileLock


def open_file(path):
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def test_second_lock_is_refused_until_the_first_is_released(tmp_path):
    path = tmp_path / "file"
    first = FileLock(open_file(path))
    second = open_file(path)
    with pytest.raises(BlockingIOError):
        FileLock(second)
    first.release()
    FileLock(second).release()


def test_lock_of_a_killed_process_is_no_lock(tmp_path):
    path = tmp_path / "file"
    code = (
        "import os, sys; from impact_twin.trials.lock import FileLock;"
        "lock = FileLock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT));"
        "print('locked', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "locked\n"
    descriptor = open_file(path)
    with pytest.raises(BlockingIOError):
        FileLock(descriptor)
    holder.kill()
    holder.communicate()
    FileLock(descriptor).release()


FORKS = """
import os, sys
from impact_twin.trials.lock import FileLock
lock = FileLock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT))
pid = os.fork()
if pid == 0:
    print("child", os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("killed", [True, False])
def test_forked_child_that_lives_on_does_not_keep_the_lock(tmp_path, killed):
    path = tmp_path / "file"
    code = FORKS if killed else FORKS.replace("os.waitpid(pid, 0)", "lock.release()")
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout.readline().startswith("child")
    descriptor = open_file(path)
    if killed:
        with pytest.raises(BlockingIOError):
            FileLock(descriptor)
        parent.kill()
    parent.wait()
    # The child still waits for its input.
    FileLock(descriptor).release()
    parent.communicate()

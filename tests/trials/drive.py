"""A driver to be killed: drive.py DIRECTORY TARGET [--option value ...] [--resume].

Prints a line `recorded PAIR TRIAL TWIN` for each case that the runner acknowledged, and exits as
the command line does: 0, 3, 130 or 143.
"""

import argparse
import os
import resource
import signal
import sys
from pathlib import Path

from impact_twin.agents import load_source
from impact_twin.errors import ImpactTwinError
from impact_twin.procurement.suite import load_suite
from impact_twin.trials.case import Backoff
from impact_twin.trials.interrupt import Interrupt
from impact_twin.trials.plan import Limits, make_plan, read_plan, renew_plan
from impact_twin.trials.runner import run


def say(*words):
    # One write, so that a kill cuts no line in two.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("target")
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=3)
    parser.add_argument("--isolation", default="thread")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--largest-file", type=int)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    kind, _, name = options.target.partition("=")
    source = load_source({"kind": kind, "name" if kind == "demo" else "target": name})
    source.prepare()
    suite = load_suite()
    if options.resume:
        plan = renew_plan(read_plan(options.directory), suite, source)
    else:
        plan = make_plan(
            suite,
            source,
            trials=options.trials,
            isolation=options.isolation,
            limits=Limits(timeout_s=options.timeout),
        )
    if options.largest_file:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.largest_file, hard))

    def progress(event):
        if event.kind == "finished":
            say("recorded", *event.key)
        elif event.kind in ("started", "stopping"):
            say(event.kind, event.message)

    with Interrupt() as interrupt:
        data = run(
            plan,
            suite,
            source,
            options.directory,
            concurrency=options.concurrency,
            resume=options.resume,
            progress=progress,
            interrupt=interrupt,
            backoff=Backoff(first_s=0.01),
        )
    say("stopped", data.stopped)
    return interrupt.exit_code or (3 if data.stopped else 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ImpactTwinError as error:
        print(error.line(), file=sys.stderr)
        sys.exit(error.exit_code)

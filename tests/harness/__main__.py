"""The command line behind the Makefile: `python3 -m harness COMMAND`, with `tests` on the module path."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from . import catalogue, demo, report, toolchain
from .failure import HarnessError
from .runner import Runner
from .step import Need, Step

BUILD_NEEDS = (Need.VENV, Need.NODE_MODULES, Need.RUST, Need.TYPESCRIPT)


def main() -> int:
    """Exit code 0 when everything went well, 1 when something failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    test = commands.add_parser("test", help="run every step, or the named groups and steps")
    test.add_argument("names", nargs="*", metavar="NAME")
    commands.add_parser("build", help="install the tools and build every artefact")
    commands.add_parser("demo", help="build everything and run examples/demo")
    commands.add_parser("servers", help="start the databases, print where they are, stop at Ctrl-C")
    commands.add_parser("steps", help="list the steps")
    arguments = parser.parse_args()
    # A terminated run ends like an interrupted one and its servers go with it, also where a shell ignores Ctrl-C
    # for what runs in the background.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if arguments.command == "steps":
            return list_steps()
        toolchain.check()
        with Runner() as runner:
            if arguments.command == "servers":
                return serve(runner)
            if arguments.command in ("build", "demo"):
                ready = runner.prepare(BUILD_NEEDS, len(BUILD_NEEDS))
                if not ready or arguments.command == "build":
                    return 0 if ready else 1
                return demo.run(runner.env())
            return 0 if runner.run(chosen(arguments.names)) else 1
    except HarnessError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


def chosen(names: list[str]) -> list[Step]:
    """The steps to run, in the catalogue's order."""
    if not names:
        return [step for step in catalogue.STEPS if not step.only_by_name]
    for name in names:
        if not catalogue.in_group(name):
            raise HarnessError(f"there is no step or group `{name}`; there are {', '.join(catalogue.groups())}")
    wanted = {step.name for name in names for step in catalogue.in_group(name)}
    return [step for step in catalogue.STEPS if step.name in wanted]


def list_steps() -> int:
    """One line per step with its groups."""
    for step in catalogue.STEPS:
        print(f"{step.name:<12} {step.title:<40} {' '.join(step.groups)}")
    return 0


def serve(runner: Runner) -> int:
    """Databases for somebody who develops, until Ctrl-C."""
    needs = (Need.VENV, Need.SERVERS)
    if not runner.prepare(needs, len(needs)):
        return 1
    for name, value in sorted(runner.env().items()):
        if name.startswith("DRAYHORSE_TEST_") or name == "DRAYHORSE_PGBOUNCER_URL":
            print(f"export {name}={value}", flush=True)
    report.note("Ctrl-C stops them.")
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    # Prompts and questions have no place in a run; a step that reads the terminal gets nothing.
    os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
    sys.exit(main())

"""The toolchains that have to be there before anything else: found and compared with the oldest version that works.

`check` names every missing one in a line of its own with what to install. Called first by every command.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from .failure import HarnessError

Version = tuple[int, ...]


@dataclass(frozen=True)
class Tool:
    """One command, how it tells its version, and the sentence for a machine without it."""

    command: str
    version_argv: tuple[str, ...]
    oldest: Version
    install: str


TOOLS = (
    Tool("cargo", ("cargo", "--version"), (1, 89), "install Rust 1.89 or newer with rustup"),
    Tool("rustfmt", ("rustfmt", "--version"), (1,), "run `rustup component add rustfmt`"),
    Tool("cargo-clippy", ("cargo-clippy", "--version"), (0,), "run `rustup component add clippy`"),
    Tool("node", ("node", "--version"), (20,), "install Node.js 20 or newer"),
    Tool("npm", ("npm", "--version"), (9,), "install npm, which comes with Node.js"),
    Tool("go", ("go", "version"), (1, 24), "install Go 1.24 or newer"),
    Tool("gcc", ("gcc", "-dumpfullversion"), (9,), "install a C compiler (Debian: apt-get install build-essential)"),
    Tool("ar", ("ar", "--version"), (2,), "install binutils (Debian: apt-get install binutils)"),
)


def parse_version(text: str) -> Version:
    """The first dotted number in a tool's answer."""
    found = re.search(r"(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def complaint(tool: Tool) -> str | None:
    """One line on what is wrong with `tool` on this machine, or nothing."""
    if shutil.which(tool.command) is None:
        return f"{tool.command} is missing: {tool.install}"
    answer = subprocess.run(tool.version_argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if answer.returncode != 0:
        return f"{tool.command} does not run: {tool.install}"
    found = parse_version(answer.stdout)
    if found < tool.oldest:
        shown = ".".join(map(str, found)) or "of an unknown version"
        return f"{tool.command} is {shown}: {tool.install}"
    return None


def python_complaint() -> str | None:
    """The same for the Python that runs this; its version was looked at on import."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "python3 lacks venv: install it (Debian: apt-get install python3-venv)"
    return None


def check() -> None:
    """Raises with one line for each toolchain that is missing or too old."""
    lines = [line for line in (python_complaint(), *map(complaint, TOOLS)) if line]
    if lines:
        raise HarnessError("\n".join(lines))

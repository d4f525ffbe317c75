"""The fenced blocks of code in what people read: the README files and `docs/`."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_ALIASES = {"py": "python", "typescript": "ts", "js": "ts", "javascript": "ts", "bash": "sh", "shell": "sh"}


@dataclass(frozen=True)
class Block:
    """One block and where it stands."""

    place: str
    language: str
    text: str

    @property
    def stem(self) -> str:
        """A file name that tells where it came from."""
        return re.sub(r"\W+", "_", self.place)


def pages() -> list[Path]:
    """Every page, the ones of the packages too."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bindings-*/*.md"), *ROOT.glob("go/*.md")]
    return sorted(page for page in found if page.name != "CHANGELOG.md")


def of(language: str) -> list[Block]:
    """The blocks in one language."""
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            tag = match["language"].lower()
            if _ALIASES.get(tag, tag) == language:
                found.append(Block(f"{page.relative_to(ROOT)}:{line}", language, textwrap.dedent(match["text"])))
    return found


def name(block: Block) -> str:
    """How pytest calls it."""
    return block.place

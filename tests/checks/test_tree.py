"""What must not be in the tree: build products, large files, unfinished work, paths of somebody's machine."""

from __future__ import annotations

import re

from . import tree

PRODUCTS = re.compile(r"\.(so|a|o|node|whl|dylib|dll|pyc)$|(^|/)(node_modules|target|__pycache__|dist)/")
UNFINISHED = re.compile(r"\b(todo!|unimplemented!)\(|\bNotImplementedError\b|\b(TODO|FIXME|XXX)\b")
MACHINE_PATH = re.compile(r"(?:^|[^\w.])/(home|root|Users|work|farm)/\w")
TOP = {
    ".ci", ".gitignore", "CHANGELOG.md", "Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "Makefile",
    "README.md",
    "rustfmt.toml", "bench", "bindings-c", "bindings-node", "bindings-python", "cli", "core", "docs", "examples", "go",
    "tests",
}  # fmt: skip
SELF = "tests/checks/test_tree.py"


def test_no_build_products_and_no_large_files() -> None:
    assert [str(file) for file in tree.files() if PRODUCTS.search(str(file))] == []
    assert [str(file) for file in tree.files() if (tree.ROOT / file).stat().st_size > 1 << 20] == []


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{file}:{number}: {line.strip()[:120]}"
        for file in tree.files()
        if str(file) != SELF
        for number, line in tree.lines(file)
        if UNFINISHED.search(line)
    ]
    assert found == []


def test_no_path_of_a_machine() -> None:
    found = [
        f"{file}:{number}: {line.strip()[:120]}"
        for file in tree.files()
        if str(file) != SELF
        for number, line in tree.lines(file)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_the_top_holds_only_what_it_should() -> None:
    assert {file.parts[0] for file in tree.files()} - TOP == set()

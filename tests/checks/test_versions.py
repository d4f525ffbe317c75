"""One version number for every package, wherever a language wants it written down."""

from __future__ import annotations

import json
import re
from pathlib import Path

from . import tree


def _read(path: str) -> str:
    return (tree.ROOT / path).read_text()


def _first(pattern: str, path: str) -> str:
    found = re.search(pattern, _read(path), re.MULTILINE)
    assert found, f"{path} names no version"
    return found.group(1)


VERSION = _first(r'^version = "([^"]+)"$', "Cargo.toml")


def test_every_crate_takes_the_workspace_version() -> None:
    for manifest in sorted(tree.ROOT.glob("*/Cargo.toml")):
        assert re.search(r"^version\.workspace = true$", manifest.read_text(), re.MULTILINE), manifest
    locked = re.findall(r'^name = "(drayhorse-[a-z]+)"\nversion = "([^"]+)"', _read("Cargo.lock"), re.MULTILINE)
    assert {name for name, _ in locked} >= {"drayhorse-core", "drayhorse-python", "drayhorse-node", "drayhorse-c"}
    assert {version for _, version in locked} == {VERSION}


def test_python_package() -> None:
    pyproject = _read("bindings-python/pyproject.toml")
    # Either maturin takes it from the crate, or it is written down.
    assert re.search(r'^dynamic = \[[^\]]*"version"', pyproject, re.MULTILINE) or (
        _first(r'^version = "([^"]+)"$', "bindings-python/pyproject.toml") == VERSION
    )


def test_node_packages() -> None:
    main = json.loads(_read("bindings-node/package.json"))
    assert main["version"] == VERSION
    platforms = sorted((tree.ROOT / "bindings-node/npm").glob("*/package.json"))
    assert platforms, "no package for any platform"
    for file in platforms:
        package = json.loads(file.read_text())
        assert package["version"] == VERSION, file
        assert main["optionalDependencies"][package["name"]] == VERSION
    locked = json.loads(_read("bindings-node/package-lock.json"))
    assert locked["version"] == VERSION


def test_go_module_asks_the_library_and_writes_no_number_down() -> None:
    sources = [file.read_text() for file in sorted((tree.ROOT / "go").glob("*.go"))]
    assert any(re.search(r"^func Version\(\)", text, re.MULTILINE) for text in sources)
    assert not any(f'"{VERSION}"' in text for text in sources)


def test_c_abi() -> None:
    header = int(_first(r"^#define DH_ABI_VERSION (\d+)$", "bindings-c/include/drayhorse.h"))
    library = int(_first(r"pub const DH_ABI_VERSION: u32 = (\d+);", "bindings-c/src/lib.rs"))
    assert header == library


def test_changelog_knows_this_version() -> None:
    assert VERSION in Path(tree.ROOT / "CHANGELOG.md").read_text()

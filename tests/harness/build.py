"""One build per profile and its products where each language looks for them.

`cargo build --workspace` makes every artefact at once; building packages one by one would compile the shared
crates again with other features. Products are put in place by renaming, because a running process may have the
old library mapped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import paths, process
from .failure import HarnessError

CARGO_ENV = {
    # Without it pyo3 links libpython, and the workspace is compiled a second time for the difference.
    "PYO3_BUILD_EXTENSION_MODULE": "1",
    "CARGO_TERM_COLOR": "never",
}

RUST_TIMEOUT_S = 1800


def rust(env: Mapping[str, str], log: Path) -> None:
    """Compiles the workspace and puts the libraries in place."""
    _run(["cargo", "build", "--workspace", "--locked"], paths.ROOT, env, log)
    out = paths.CARGO_OUT
    _place(out / "libdrayhorse_python.so", paths.PYTHON_PACKAGE / "_native.abi3.so")
    _place(out / "libdrayhorse_node.so", paths.NODE_PACKAGE / "native" / "drayhorse.node")
    _run([str(paths.GO_MODULE / "link.sh"), str(out / "libdrayhorse.a")], paths.ROOT, env, log)


def typescript(env: Mapping[str, str], log: Path) -> None:
    """Compiles the TypeScript facade to JavaScript."""
    _run(["npm", "run", "build"], paths.NODE_PACKAGE, env, log)


def _place(product: Path, place: Path) -> None:
    if place.exists() and (place.stat().st_mtime_ns, place.stat().st_size) == (
        product.stat().st_mtime_ns,
        product.stat().st_size,
    ):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.copy2(product, fresh)
    fresh.rename(place)


def _run(argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> None:
    code = process.run(argv, cwd=cwd, env={**env, **CARGO_ENV}, log=log, timeout_s=RUST_TIMEOUT_S)
    if code != 0:
        raise HarnessError(f"`{' '.join(argv)}` ended with {code}")

"""The wheel and the source distribution of the Python package, each installed with pip into an empty environment."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from .conftest import ROOT, Place, clean_env, run

PACKAGE = ROOT / "bindings-python"
# The registry's crates are compiled once for both; the workspace's own stay apart from the development build.
BUILD_ENV = {"CARGO_TARGET_DIR": str(ROOT / "target" / "packaging"), "MATURIN_PEP517_ARGS": "--profile dev"}

PROGRAM = """
import sys
from drayhorse import EnqueueOptions, Queue, Worker, WorkerOptions

url, schema = sys.argv[1:]
with Queue.connect(url, schema=schema) as queue:
    queue.migrate()
    made = queue.enqueue("greet", {"name": "you"}, EnqueueOptions(max_attempts=2))
    worker = Worker(queue, WorkerOptions(concurrency=2))

    @worker.handler("greet")
    def greet(payload, job):
        worker.stop()
        return "hello " + payload["name"]

    worker.run()
    print(queue.wait(made, 10_000).result)
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    maturin = [sys.executable, "-m", "maturin"]
    env = clean_env(**BUILD_ENV)
    run([*maturin, "sdist", "--out", folder], PACKAGE, env)
    run([*maturin, "build", "--profile", "dev", "--out", folder], PACKAGE, env)
    return folder


def test_the_wheel_is_typed_and_for_every_python_from_3_10(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    assert "-cp310-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert "drayhorse/py.typed" in names
    assert sum(name.endswith(".so") for name in names) == 1
    assert not any("test" in name for name in names)


def test_the_source_distribution_holds_the_core(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert any(name.endswith("core/sql/enqueue.sql") for name in names)
    assert any(name.endswith("Cargo.lock") for name in names)
    assert not any(name.endswith(".so") for name in names)


@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_installed_it_works(distributions: Path, pattern: str, tmp_path: Path, place: Place) -> None:
    (distribution,) = distributions.glob(pattern)
    run([sys.executable, "-m", "venv", tmp_path / "venv"], tmp_path, clean_env())
    python = tmp_path / "venv" / "bin" / "python"
    env = clean_env(**BUILD_ENV)
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", distribution], tmp_path, env)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert run([python, program, place.url, place.schema], tmp_path, clean_env(), 60) == "hello you\n"

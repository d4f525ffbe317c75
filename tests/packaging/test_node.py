"""The Node package and its platform package, packed with npm and installed into an empty folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import ROOT, Place, clean_env, run

PACKAGE = ROOT / "bindings-node"

BODY = """
  const [url, schema] = process.argv.slice(2);
  const queue = await Queue.connect(url, { schema });
  await queue.migrate();
  const made = await queue.enqueue("greet", { name: "you" }, { maxAttempts: 2 });
  const worker = new Worker(queue, { concurrency: 2 });
  worker.handle("greet", async (payload) => {
    worker.stop();
    return "hello " + payload.name;
  });
  await worker.run();
  console.log((await queue.wait(made, 10_000)).result);
  await queue.close();
"""
PROGRAMS = {
    "program.mjs": f'import {{ Queue, Worker }} from "drayhorse";\n{BODY}',
    "program.cjs": f'const {{ Queue, Worker }} = require("drayhorse");\n(async () => {{{BODY}}})();\n',
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both packages are installed from their archives."""
    folder = tmp_path_factory.mktemp("node")
    env = clean_env()
    (platform,) = (PACKAGE / "npm").iterdir()
    staged = folder / "platform"
    shutil.copytree(platform, staged)
    shutil.copy2(PACKAGE / "native" / "drayhorse.node", staged / "drayhorse.node")
    archives = [
        folder / json.loads(run(["npm", "pack", "--json", "--pack-destination", folder], source, env))[0]["filename"]
        for source in (staged, PACKAGE)
    ]
    user = folder / "user"
    user.mkdir()
    (user / "package.json").write_text('{"name": "user", "private": true}')
    run(["npm", "install", "--no-audit", "--no-fund", *archives], user, env)
    for name, text in PROGRAMS.items():
        (user / name).write_text(text)
    return user


def test_only_what_is_needed_is_packed(installed: Path) -> None:
    files = {path.relative_to(installed) for path in (installed / "node_modules" / "drayhorse").rglob("*")}
    names = {str(path) for path in files}
    assert any(name.endswith("dist/index.d.ts") for name in names)
    assert not any("/test/" in name or name.endswith((".rs", ".node")) for name in names)


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_installed_it_works(installed: Path, program: str, place: Place) -> None:
    assert run(["node", program, place.url, place.schema], installed, clean_env(), 60) == "hello you\n"

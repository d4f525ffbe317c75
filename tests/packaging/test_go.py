"""The Go module as `go get` would bring it: its files and the archive, used by a module that is elsewhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT, Place, clean_env, run

MODULE = ROOT / "go"

PROGRAM = """package main

import (
	"context"
	"fmt"
	"os"

	drayhorse "MODULE"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, schema string) error {
	queue, err := drayhorse.Connect(ctx, url, drayhorse.WithSchema(schema))
	if err != nil {
		return err
	}
	defer queue.Close()
	if err = queue.Migrate(ctx); err != nil {
		return err
	}
	made, err := queue.Enqueue(ctx, "greet", map[string]any{"name": "you"}, drayhorse.EnqueueOptions{MaxAttempts: 2})
	if err != nil {
		return err
	}
	worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{Concurrency: 2})
	worker.Handle("greet", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		worker.Stop()
		return "hello you", nil
	})
	if err = worker.Run(ctx); err != nil {
		return err
	}
	job, err := queue.Get(ctx, made.ID)
	if err != nil {
		return err
	}
	fmt.Println(job.State)
	return nil
}
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program's module beside a copy of ours, in a folder that has nothing else."""
    folder = tmp_path_factory.mktemp("go")
    shutil.copytree(MODULE, folder / "drayhorse", ignore=shutil.ignore_patterns("*_test.go", "testdata"))
    module = (MODULE / "go.mod").read_text().split()[1]
    program = folder / "program"
    program.mkdir()
    (program / "main.go").write_text(PROGRAM.replace("MODULE", module))
    (program / "go.mod").write_text(
        f"module program\n\ngo 1.24\n\nrequire {module} v0.0.0\n\nreplace {module} => ../drayhorse\n"
    )
    return program


def test_it_builds_and_works(user: Path, place: Place) -> None:
    env = clean_env(GOFLAGS="-mod=mod", GOPROXY="off")
    run(["go", "build", "-o", "program", "."], user, env)
    assert run([user / "program", place.url, place.schema], user, env, 60) == "succeeded\n"


def test_without_cgo_one_line_says_so(user: Path) -> None:
    env = clean_env(GOFLAGS="-mod=mod", GOPROXY="off", CGO_ENABLED="0")
    done = subprocess.run(["go", "build", "."], cwd=user, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "cgo" in done.stderr.lower(), done.stderr

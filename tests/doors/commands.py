"""Running `penstock` as people do: in the test's own process, or as a program."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.clock import parse_time

# The moment at which the demo's week ends, for tests that load it.
NOW = parse_time("2024-11-15T09:30:00Z")


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its output as JSON."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def text(self) -> str:
        """Its output for people."""
        assert self.code == 0, self.err
        return self.out

    @property
    def complaint(self) -> str:
        """The one line in which it said what went wrong."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("penstock: ")
        return lines[0]


class Terminal:
    """Runs commands in this process against one server."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Outcome:
        self._capsys.readouterr()
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return Outcome(code, out, err)


def go_home(monkeypatch: pytest.MonkeyPatch, folder: Path, columns: int = 80) -> None:
    """Have commands of this process run in a folder, with nothing of ours configured."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("COLUMNS", str(columns))


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """An environment in which nothing of ours is configured."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return kept | {"HOME": str(folder), "COLUMNS": "80", "PYTHONUTF8": "1"} | variables


def program(
    folder: Path, *arguments: str, text: str = "", variables: Mapping[str, str] | None = None
) -> Outcome:
    """Run the command as a program of its own in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli", *arguments],
        cwd=folder,
        env=environment(folder, **(variables or {})),
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)

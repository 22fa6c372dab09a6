"""How commands end: what cannot be told is an error; what goes wrong is told in one line."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.doors.commands import Outcome, Terminal, environment

KEY = ("keys", "create", "etl", "--role", "writer")
LIST = ("keys", "list", "--revoked", "--json")
SUBSCRIBER = ("--kind", "webhook", "--url", "http://x.test/")
_START = 'exec "$0" -m penstock.cli "$@" '


def shell(folder: Path, redirect: str, *arguments: str, **variables: str) -> Outcome:
    """Run the command as a shell does, with its output led elsewhere."""
    done = subprocess.run(
        ["/bin/sh", "-c", _START + redirect, sys.executable, *arguments],
        cwd=folder,
        env=environment(folder, **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def database(database_url: str) -> Mapping[str, str]:
    return {"PENSTOCK_DATABASE": database_url}


@pytest.mark.parametrize(
    ("redirect", "arguments"),
    [
        (">/dev/full", LIST),
        (">/dev/full", ("--help",)),
        (">&-", ("keys", "list")),
        (">&-", ("--version",)),
    ],
)
def test_what_cannot_be_told_is_an_error(
    tmp_path: Path, database: Mapping[str, str], redirect: str, arguments: tuple[str, ...]
) -> None:
    ended = shell(tmp_path, redirect, *arguments, **database)
    assert ended.code == 1
    assert "the output cannot be written to stdout" in ended.complaint


@pytest.mark.parametrize(("redirect", "json"), [(">/dev/full", ()), (">&-", ("--json",))])
def test_a_key_that_nobody_was_told_is_revoked(
    tmp_path: Path, database: Mapping[str, str], redirect: str, json: tuple[str, ...]
) -> None:
    ended = shell(tmp_path, redirect, *KEY, *json, **database)
    assert ended.code == 1
    assert "key 'etl' is revoked" in ended.err
    assert "store its token now" not in ended.err
    [key] = shell(tmp_path, "", *LIST, **database).document["keys"]
    assert key["revokedAt"] is not None
    assert shell(tmp_path, "", *KEY, **database).text.startswith("pk_")


def test_a_key_whose_reader_has_gone_is_revoked(
    tmp_path: Path, database: Mapping[str, str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "penstock.cli", *KEY],
        cwd=tmp_path,
        env=environment(tmp_path, **database),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "is revoked" in ended.stderr


@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-"])
def test_the_exit_code_tells_it_where_stderr_cannot(
    tmp_path: Path, database: Mapping[str, str], redirect: str
) -> None:
    assert shell(tmp_path, redirect, "nonsense").code == 2
    assert shell(tmp_path, redirect, "keys", "revoke", "nobody", **database).code == 1
    assert shell(tmp_path, redirect, *LIST, **database).document == {"keys": []}


@pytest.mark.parametrize("name", ["cyclopts", "msgspec"])
def test_who_is_interrupted_while_it_starts_says_so(tmp_path: Path, name: str) -> None:
    """Python hears Ctrl-C whatever it is about: here, as a package is being imported."""
    (tmp_path / f"{name}.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: signal.pause()\n"
    )
    ended = shell(tmp_path, "", "--version", PYTHONPATH=str(tmp_path))
    assert (ended.code, ended.out) == (130, "")
    assert ended.complaint == "penstock: interrupted"


@pytest.mark.parametrize(
    "arguments",
    [
        ("emit", "none.json"),
        ("arcs", "apply", "none.toml"),
        ("arcs", "apply", "none.yaml"),
        ("ingest", "collections", "apply", "none.toml"),
        ("ingest", "submit", "maps", "./none.tif"),
        ("ingest", "submit", "maps", "./none.checkm"),
        ("config", "show", "--config", "none.toml"),
        ("subscribers", "set", "x", *SUBSCRIBER, "--secret-file", "none"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_a_wrong_command(
    penstock: Terminal, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:1")
    refused = penstock(*arguments)
    assert refused.code == 2, refused.err
    assert "none" in refused.complaint

"""Commands for whoever runs the server; what is about a process is a program of its own."""

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from penstock import __version__
from penstock.clock import DAY, format_time, system_clock
from penstock.config import Settings
from penstock.plane import Plane
from penstock.schema.admin import KeyRole
from tests.doors.commands import Terminal, environment, program
from tests.doors.serving import run_event, running


@pytest.fixture
def penstock(penstock: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Commands in a folder of their own, with nobody at the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return penstock


@contextmanager
def serving(folder: Path, *arguments: str, **variables: str) -> Iterator[tuple[str, int]]:
    """`penstock serve` as a program; gives its URL and its process id, and sees it end well."""
    log = folder / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "serve", *arguments],
            cwd=folder,
            env=environment(folder, **variables),
            stderr=stream,
        )
    try:
        while not (found := re.search(r"listens on (http://[^\s,\"]+)", log.read_text())):
            assert server.poll() is None, log.read_text()
            time.sleep(0.01)
        yield found[1], server.pid
    finally:
        server.terminate()
        assert server.wait() == 0


def test_serve_answers_and_ends_with_0_on_sigterm(tmp_path: Path, database_url: str) -> None:
    with serving(tmp_path, "--port", "0", "--database", database_url) as (url, pid):
        assert httpx.get(f"{url}/readyz", verify=False).json() == {"status": "ok"}
        listed = program(tmp_path, "namespaces", "list", "--json", variables={"PENSTOCK_URL": url})
        assert [each["name"] for each in listed.document["namespaces"]] == ["default"]
        os.kill(pid, signal.SIGTERM)


def test_flags_beat_the_environment_which_beats_the_file(
    penstock: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "penstock.toml").write_text('host = "10.0.0.1"\nport = 1\nlog_format = "json"\n')
    variables = {"PENSTOCK_HOST": "10.0.0.2", "PENSTOCK_PORT": "2", "PENSTOCK_API_KEY": "pk_1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown = penstock("config", "show", "--json", "--host", "10.0.0.3").document
    found = {line["name"]: (line["value"], line["origin"].split()[0]) for line in shown}
    assert found["host"] == ("10.0.0.3", "flag")
    assert found["port"] == (2, "environment")
    assert found["log_format"] == ("json", "file")
    assert found["log_level"] == ("info", "default")
    assert found["api_key"] == ("********", "environment")
    text = penstock("config", "show").text
    assert re.search(r"port +2 +environment PENSTOCK_PORT", text)
    assert "pk_1" not in text


def test_serve_takes_its_settings_from_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'database = "sqlite:///{tmp_path}/mine.db"\nlog_format = "json"\nport = 1\n')
    with serving(tmp_path, "--config", str(file), PENSTOCK_PORT="0") as (url, _):
        assert httpx.get(f"{url}/livez", verify=False).status_code == 200
    lines = (tmp_path / "server.log").read_text().splitlines()
    assert all("message" in json.loads(line) for line in lines)
    assert (tmp_path / "mine.db").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["serve", "--port", "many"], "--port"),
        (["serve", "--log-level", "loud"], "debug, info, warning, error"),
        (["serve", "--config", "missing.toml"], "missing.toml"),
        (["config", "show", "--url", "ftp://x"], "http://"),
        (["keys", "create", "me"], "--role"),
        (["keys", "create", "me", "--role", "king"], "reader"),
        (["keys", "create", "", "--role", "admin"], "name"),
        (["prune", "--older-than", "soon"], "90d"),
        (["prune", "--older-than", "0d", "--dry-run"], "90d"),
        (["prune", "--older-than", "100000000d", "--dry-run"], "is too long"),
        (["lineage", "orders", "--as-of", "100000000d"], "is too long"),
        (["events", "list", "--after", "100000000w"], "is too long"),
        (["prune", "--older-than", "90d"], "--yes"),
        (["fly"], "penstock --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_ends_with_2_and_one_line(
    penstock: Terminal, arguments: list[str], told: str
) -> None:
    done = penstock(*arguments)
    assert done.code == 2
    assert told in done.complaint
    assert done.out == ""


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--host", "0.0.0.0", "--port", "0"], "penstock keys create"),
        (["--database", "mysql://x"], "sqlite:///"),
        (["--database", f"sqlite:///{__file__}"], "not a database of SQLite"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_server_that_cannot_be_started_ends_with_2_and_one_line(
    tmp_path: Path, flags: list[str], told: str
) -> None:
    done = program(tmp_path, "serve", *flags)
    assert done.code == 2
    assert told in done.complaint
    assert done.out == ""


def test_a_database_that_is_damaged_or_anothers_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "some.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE users (id INTEGER)")
    done = program(tmp_path, "serve", "--database", f"sqlite:///{file}")
    assert done.code == 2
    assert "it has tables (users) and no ledger" in done.complaint
    file.write_bytes(file.read_bytes()[:100].ljust(8192, b"\xff"))
    done = program(tmp_path, "serve", "--database", f"sqlite:///{file}")
    assert done.code == 1
    assert "is damaged; stop every penstock process" in done.complaint


def test_a_server_that_is_not_there(penstock: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:9")
    done = penstock("jobs", "list")
    assert done.code == 1
    assert "cannot reach http://127.0.0.1:9" in done.complaint
    assert "start it with `penstock serve` or set PENSTOCK_URL" in done.complaint


@pytest.mark.parametrize(
    "command",
    [
        ["keys", "list"],
        ["keys", "revoke", "me"],
        ["prune", "--older-than", "90d", "--dry-run"],
        ["prune", "--older-than", "90d", "--yes"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_not_made_to_look_into(
    penstock: Terminal, tmp_path: Path, command: list[str]
) -> None:
    done = penstock(*command, "--database", "sqlite:///mistyped/penstock.db")
    assert done.code == 1
    assert "there is no database mistyped/penstock.db; check --database" in done.complaint
    assert not (tmp_path / "mistyped").exists()


def test_a_database_that_is_not_there(penstock: Terminal) -> None:
    url = "postgresql://nobody@127.0.0.1:9/none"
    done = penstock("keys", "list", "--database", url)
    assert done.code == 1
    assert "PostgreSQL" in done.complaint


def test_version_and_help(tmp_path: Path, penstock: Terminal) -> None:
    assert program(tmp_path, "--version").text == f"{__version__}\n"
    text = penstock("--help").text
    assert "Exit codes: 0 done; 1 failed" in text
    for command in ("serve", "lineage", "datasets", "prune", "demo"):
        assert re.search(rf"│ {command} +\w", text)
    assert "penstock lineage daily_revenue" in penstock("lineage", "--help").text


def test_colours_only_where_they_are_wanted(
    penstock: Terminal, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    colour = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    with running(database_url) as server:
        server.client.post("/api/v1/lineage", json=run_event())
        monkeypatch.setenv("PENSTOCK_URL", server.server.url)
        monkeypatch.setenv("TERM", "xterm-256color")
        command = ("lineage", "job:food:etl")
        assert "\x1b" not in penstock(*command).text
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert colour.search(penstock(*command).text)
        monkeypatch.setenv("NO_COLOR", "1")
        assert not colour.search(penstock(*command).text)


def test_a_terminal_without_unicode_gets_plain_characters(
    tmp_path: Path, database_url: str
) -> None:
    with running(database_url) as server:
        server.client.post("/api/v1/lineage", json=run_event())
        here = {"PENSTOCK_URL": server.server.url, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
        drawn = program(tmp_path, "lineage", "job:food:etl", variables=here).text
    assert drawn.isascii()
    assert "`-# raw" in drawn


def test_names_cannot_steer_the_terminal(
    penstock: Terminal, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(database_url) as server:
        job = {"namespace": "food", "name": "evil\x1b]0;owned\x07 [red]job"}
        server.client.post("/api/v1/lineage", json=run_event(job=job))
        monkeypatch.setenv("PENSTOCK_URL", server.server.url)
        for command in (["jobs", "list"], ["lineage", "food/raw"], ["events", "list"]):
            text = penstock(*command).text
            assert "\x1b" not in text
            assert "[red]" in text


def test_a_reader_that_goes_away_is_no_error_to_shout_about(
    tmp_path: Path, database_url: str
) -> None:
    with running(database_url) as server:
        for number in range(300):
            server.client.post("/api/v1/lineage", json=run_event(f"r{number}"))
        listing = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "events", "list", "--limit", "300", "--json"],
            env=environment(tmp_path, PENSTOCK_URL=server.server.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.close()
        assert b"Traceback" not in listing.stderr.read()
        assert listing.wait() in (0, 1)


def test_keys_are_made_listed_and_revoked(
    database_url: str, penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE", database_url)
    made = penstock("keys", "create", "etl", "--role", "writer", "--namespace", "food")
    token = made.text.strip()
    assert re.fullmatch(r"pk_[\w-]{40,}", token)
    assert "store its token now" in made.err
    again = penstock("keys", "create", "etl", "--role", "reader")
    assert (again.code, "already" in again.complaint) == (1, True)
    with Plane.open(Settings(database=database_url)) as plane:
        key = plane.keys.authenticate(token)
        assert (key.name, key.role, key.namespace) == ("etl", KeyRole.WRITER, "food")
    listed = penstock("keys", "list", "--json").document["keys"]
    assert [(key["name"], key["role"], key["namespace"]) for key in listed] == [
        ("etl", "writer", "food")
    ]
    assert token not in penstock("keys", "list").text
    assert penstock("keys", "revoke", "etl").text == "key etl is revoked\n"
    assert penstock("keys", "list", "--json").document["keys"] == []
    assert penstock("keys", "list", "--revoked", "--json").document["keys"][0]["revokedAt"]
    gone = penstock("keys", "revoke", "etl")
    assert (gone.code, "no live key" in gone.complaint) == (1, True)
    other = penstock("keys", "create", "boss", "--role", "admin", "--json").document
    assert other["token"].startswith("pk_")
    assert other["key"]["role"] == "admin"


def test_prune_counts_asks_and_deletes_while_a_server_runs(
    database_url: str, penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE", database_url)
    with running(database_url) as server:
        for days in (200, 150, 1):
            at = format_time(system_clock() - days * DAY)
            event = run_event(f"r{days}", eventTime=at, eventType="COMPLETE")
            server.client.post("/api/v1/lineage", json=event)
        prune = ("prune", "--older-than", "90d")
        counted = penstock(*prune, "--dry-run", "--json").document
        assert counted["dryRun"] is True
        assert counted["pruned"] == {
            "events": 2,
            "runs": 2,
            "versions": 2,
            "jobVersions": 0,
            "columnSets": 0,
            "facetSets": 0,
        }
        deleted = penstock(*prune, "--yes", "--json").document
        assert deleted["pruned"] == counted["pruned"]
        assert re.search(r"events +0\n", penstock(*prune, "--dry-run").text)
        event = run_event("r0", eventTime=format_time(system_clock()), eventType="COMPLETE")
        server.client.post("/api/v1/lineage", json=event)
        versions = server.client.get("/api/v1/namespaces/food/datasets/clean/versions").json()
        assert [version["number"] for version in versions["versions"]] == [4, 3]
        entries = server.client.get("/api/v1/audit").json()["entries"]
        assert {entry["action"] for entry in entries} == {"prune"}
        assert entries[0]["who"].startswith("command line")


def test_prune_asks_before_it_deletes(
    database_url: str, penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Person:
        """Somebody at the terminal."""

        def __init__(self, answer: str) -> None:
            self.answer = answer

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return self.answer

    monkeypatch.setenv("PENSTOCK_DATABASE", database_url)
    monkeypatch.setattr(sys, "stdin", Person("n\n"))
    declined = penstock("prune", "--older-than", "1d")
    assert (declined.code, "nothing was deleted" in declined.err) == (1, True)
    monkeypatch.setattr(sys, "stdin", Person("y\n"))
    assert "Deleted, older than" in penstock("prune", "--older-than", "1d").text


def test_a_key_has_rates_that_can_be_changed(penstock: Terminal, tmp_path: Path) -> None:
    database = ("--database", f"sqlite:///{tmp_path}/penstock.db", "--json")

    created = penstock(
        *("keys", "create", "etl", "--role", "writer", "--requests-per-second", "50"), *database
    ).document
    limited = penstock("keys", "limit", "etl", "--bytes-per-second", "1000", *database).document
    reset = penstock("keys", "limit", "etl", *database).document

    rates = [
        (key["requestsPerSecond"], key["bytesPerSecond"])
        for key in (created["key"], limited, reset)
    ]
    assert rates == [(50, None), (None, 1000), (None, None)]
    refused = penstock("keys", "limit", "etl", "--requests-per-second", "-1", *database)
    assert "a rate is a whole number from 0" in refused.complaint
    assert "no live key named 'ghost'" in penstock("keys", "limit", "ghost", *database).complaint

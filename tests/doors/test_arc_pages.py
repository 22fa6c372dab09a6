"""The pages on arcs: all their commands run, and do what the pages show."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import sqlite_database
from tests.doors.commands import environment
from tests.doors.serving import Running, running

_BEFORE = "set -o pipefail; trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """SQLite with local files, or PostgreSQL with an S3 server."""
    if request.param == "sqlite":
        with running(sqlite_database(tmp_path / "penstock.db")) as found:
            yield found
        return
    url = request.getfixturevalue("postgres_url")
    bucket = request.getfixturevalue("bucket_url")
    with running(url, objects=f"{bucket}/pages") as found:
        yield found


def run_page(name: str, server: Running, folder: Path) -> str:
    """Run the shell blocks of a page as one script in an empty folder; return their output."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    if server.plane.objects.path("x") is None:  # only folders can be walked through
        blocks = [re.sub("^find .*", "", block, flags=re.MULTILINE) for block in blocks]
    place = folder / "page"
    place.mkdir()
    settings = server.plane.settings
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    here = environment(
        folder,
        PATH=path,
        PENSTOCK_URL=server.server.url,
        PENSTOCK_DATABASE=settings.database,
        PENSTOCK_OBJECTS=settings.objects,
        PENSTOCK_INGEST_FOLDER=str(folder / "ingest"),
        COLUMNS="200",
    )
    done = subprocess.run(
        ["bash", "-euc", "\n".join([_BEFORE, *blocks])],
        cwd=place,
        env=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
def test_arcs(server: Running, tmp_path: Path) -> None:
    said = run_page("arcs.md", server, tmp_path)
    assert "arc shop/split would be created" in said
    assert "arc shop/count is created" in said
    assert "2 objects, 4 B" in said
    shown = [entry.key for entry in server.plane.objects.list("arcs")]
    assert [key.rpartition("/")[2] for key in shown] == ["complete.arc"] * 4
    assert said.count("complete.arc") == 4
    assert "0 corrected" in said


def test_arrivals(server: Running, tmp_path: Path) -> None:
    said = run_page("arrivals.md", server, tmp_path)
    assert "3 lots of PT1H" in said
    assert "2 present, 1 empty" in said
    assert "1 object, 5 B" in said
    assert "2 objects, 10 B" in said
    assert re.search(r"late +amend", said)


def test_backfills_and_gaps(server: Running, tmp_path: Path) -> None:
    said = run_page("backfills-and-gaps.md", server, tmp_path)
    page = (DOCS / "backfills-and-gaps.md").read_text()
    [shown] = re.findall(r"```\n(shop/clean.*?)```", page, re.DOTALL)
    for line in shown.splitlines():
        assert line.rstrip(" …") in said
    planned, *free = re.findall(r"^it would: (.*)$", said, re.MULTILINE)
    assert free == ["1 release", "nothing"]
    assert sorted(planned.split(", ")) == ["1 release", "1 wait", "3 leave"]
    assert "20261115PT1H00: removed" in said
    assert "from 20261115PT1H00 to 20261115PT1H02: 3 present" in said


def test_subscribers(server: Running, tmp_path: Path) -> None:
    said = run_page("subscribers.md", server, tmp_path)
    assert re.search(r'^pager-1 \{"id":1,.*"lot":"2026-11-15"', said, re.MULTILINE)
    assert "subscriber pager receives the events after 0" in said
    assert re.search(r"^id: 1$", said, re.MULTILINE)
    assert "marquez" in said

"""`penstock ingest start`: which stages, until when, and how it is stopped."""

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.ingest.stages import STAGE_NAMES
from penstock.zookeeper import Create, ZooKeeperSession
from tests.databases import sqlite_database
from tests.doors.commands import Terminal, go_home, program
from tests.doors.ingest_site import SESSION_SECONDS, Site, collection, site, submitted
from tests.doors.waiting import until
from tests.web import Answer, Request, content, head

SIZE = 100_000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, sqlite_database(tmp_path / "penstock.db")) as made:
        yield made


@pytest.fixture
def penstock(penstock: Terminal, here: Site, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PENSTOCK_URL", here.url)
    collection(here, penstock, "maps")
    return penstock


def status(penstock: Terminal, batch: str) -> tuple[str, list[tuple[str, bool]]]:
    """The status of a batch, and of each of its jobs, and whether somebody has it."""
    shown = penstock("ingest", "show", batch, "--json").document
    jobs = penstock("ingest", "jobs", batch, "--json").document["jobs"]
    return shown["status"], [(job["status"], job["lockedBy"] is not None) for job in jobs]


def stalled(go_on: threading.Event, *, drips: bool) -> Answer:
    """A download that has begun and does not end before it is let go."""

    def answer(request: Request, connection: socket.socket) -> None:
        connection.sendall(head(200, {"Content-Length": SIZE}))
        sent = 0
        while request.method != "HEAD" and sent < SIZE:
            if not go_on.wait(0.05):
                if not drips:
                    continue
                connection.sendall(b"x")
                sent += 1
            else:
                connection.sendall(b"x" * (SIZE - sent))
                sent = SIZE

    return answer


def test_it_works_on_the_stages_it_is_told(here: Site, penstock: Terminal) -> None:
    batch = submitted(penstock, "maps", here.serve("a", b"a"))
    log = here.work("--stages", "batch-pending, pending", "--concurrency", "2")
    assert "processes batch-pending, pending, 2 jobs at a time" in log
    assert f"folder {here.settings['PENSTOCK_INGEST_FOLDER']}" in log
    assert status(penstock, batch) == ("processing", [("estimating", False)])
    assert "no work is left" in here.work("--stages", "notify")
    here.work()
    assert status(penstock, batch) == ("completed", [("completed", False)])
    assert "no work is left" in here.work()


def test_it_gives_back_what_is_at_hand_and_another_goes_on(here: Site, penstock: Terminal) -> None:
    go_on = threading.Event()
    url = here.web.on("/slow", stalled(go_on, drips=True), content(b"x" * SIZE))
    batch = submitted(penstock, "maps", url)
    with here.start() as worker:
        until(lambda: bool(here.web.requests_to("/slow")))
        worker.send(signal.SIGTERM)
        assert worker.ended() == 0
        assert "stopped: running work is finished or released" in worker.log()
        assert "Traceback" not in worker.log()
    go_on.set()
    assert status(penstock, batch) == ("processing", [("downloading", False)])
    here.work()
    assert status(penstock, batch) == ("completed", [("completed", False)])


def test_what_hangs_when_it_is_told_to_stop_is_left_to_others(
    here: Site, penstock: Terminal
) -> None:
    go_on = threading.Event()
    url = here.web.on("/stuck", stalled(go_on, drips=False), content(b"x" * SIZE))
    batch = submitted(penstock, "maps", url)
    try:
        with here.start() as worker:
            until(lambda: bool(here.web.requests_to("/stuck", "GET")))
            worker.send(signal.SIGTERM)
            assert worker.ended() == 0
            assert "downloading: running work hangs; other workers will repeat it" in worker.log()
            assert "Traceback" not in worker.log()
        assert status(penstock, batch) == ("processing", [("downloading", False)])
    finally:
        go_on.set()
    here.work()
    assert status(penstock, batch) == ("completed", [("completed", False)])


def test_a_second_signal_ends_it_at_once(here: Site, penstock: Terminal) -> None:
    go_on = threading.Event()
    url = here.web.on("/stuck", stalled(go_on, drips=False), content(b"x" * SIZE))
    batch = submitted(penstock, "maps", url)
    try:
        with here.start() as worker:
            until(lambda: bool(here.web.requests_to("/stuck")))
            worker.send(signal.SIGINT)
            until(lambda: "stopping" in worker.log())
            worker.send(signal.SIGINT)
            assert worker.ended() == 130
            assert (
                f"penstock: stopped at once; other workers go on in {SESSION_SECONDS} s"
                in worker.log()
            )
    finally:
        go_on.set()
    here.work()
    assert status(penstock, batch) == ("completed", [("completed", False)])


def test_what_no_worker_can_take_does_not_keep_it(
    tmp_path: Path,
    zookeeper_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_home(monkeypatch, tmp_path)
    penstock = Terminal(capsys)
    with site(tmp_path, sqlite_database(tmp_path / "penstock.db"), zookeeper_url) as here:
        monkeypatch.setenv("PENSTOCK_URL", here.url)
        collection(here, penstock, "maps")
        done, stuck = (submitted(penstock, "maps", here.serve(name, b"a")) for name in "ab")
        here.work("--stages", "batch-pending")
        with ZooKeeperSession.open(zookeeper_url) as session:
            session.multi(
                [
                    Create("/jobs/states/pending/05-jid0000000777"),
                    Create("/jobs/states/failed/200-jid0000000002"),
                    Create("/jobs/jid0000000888"),
                    Create(f"/batches/{stuck}/states/batch-processing/jid0000000666"),
                ]
            )
        log = here.work()
        assert "1 jobs are in the queue and cannot be processed" in log
        assert "1 batches have no open jobs and are not reported" in log
        assert status(penstock, done) == ("completed", [("completed", False)])
        assert status(penstock, stuck) == ("processing", [("completed", False)])
        assert penstock("ingest", "check", "--repair").code == 0
        assert "no work is left" in here.work()
        assert status(penstock, stuck) == ("completed", [("completed", False)])


def test_who_waits_for_space_is_not_waited_for(here: Site, penstock: Terminal) -> None:
    batch = submitted(penstock, "maps", here.serve("a", b"a"))
    full = Site(
        here.folder, here.server, here.web, {**here.settings, "PENSTOCK_SPACE_FREE_MB": "999999999"}
    )
    assert "1 jobs wait for space in" in full.work()
    assert status(penstock, batch) == ("processing", [("provisioning", False)])


def test_an_ingest_folder_that_cannot_be_made_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    folder = tmp_path / "file" / "ingest"
    for command in (["ingest", "start", "--once"], ["up", "--port", "0"]):
        refused = program(tmp_path, *command, "--ingest-folder", str(folder))
        assert refused.code == 1
        assert "Traceback" not in refused.err
        assert refused.err.splitlines()[-1] == (
            f"penstock: the ingest folder {folder} cannot be made: {tmp_path / 'file'} is a file; "
            "correct that, or set ingest_folder to another"
        )


def test_the_help_names_every_stage(penstock: Terminal) -> None:
    told = penstock("ingest", "start", "--help").text
    assert [stage for stage in STAGE_NAMES if stage not in told] == []


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--stages", "fetching"], "there is no stage fetching; the stages are batch-pending,"),
        (["--stages", ","], "--stages is empty"),
        (["--concurrency", "0"], "write 1 or more"),
        (["--queue", "redis://x"], "zookeeper://"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_flags(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flags: list[str],
    told: str,
) -> None:
    go_home(monkeypatch, tmp_path)
    refused = Terminal(capsys)("ingest", "start", *flags)
    assert refused.code == 2
    assert told in refused.complaint


def test_a_database_of_an_unknown_kind(tmp_path: Path) -> None:
    refused = program(tmp_path, "ingest", "start", "--database", "mysql://x")
    assert refused.code == 2
    assert "sqlite:///" in refused.complaint

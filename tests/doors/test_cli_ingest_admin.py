"""What administrators do to ingest on the command line, on a server with no worker but theirs."""

import io
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.cli.ingest import watch
from penstock.client import Client
from penstock.ingest.models import IngestHoldKind
from penstock.ingest.service import AdminAction
from penstock.schema.ingest import CheckStep, CheckStepKind
from tests.databases import sqlite_database
from tests.doors.commands import Terminal
from tests.doors.ingest_site import Site, collection, site, submitted
from tests.doors.waiting import until


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site on which nobody works unless a test wants it."""
    folder = tmp_path_factory.mktemp("still")
    with site(folder, sqlite_database(folder / "penstock.db")) as made:
        yield made


@pytest.fixture
def films(still: Site, penstock: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A collection where there is no worker."""
    monkeypatch.setenv("PENSTOCK_URL", still.url)
    return collection(still, penstock, f"films-{tmp_path.name}")


def person(answer: str) -> object:
    class Person(io.StringIO):
        def isatty(self) -> bool:
            return True

    return Person(answer)


def status(penstock: Terminal, batch: str) -> str:
    return str(penstock("ingest", "show", batch, "--json").document["status"])


def test_what_an_administrator_does_to_a_batch(still: Site, penstock: Terminal, films: str) -> None:
    manifest = still.manifest({"seven": b"7", "eight": b"8"})
    batch = submitted(penstock, films, str(manifest))
    assert penstock("ingest", "hold", batch, "--why", "wait").text.endswith(f" {films} is held\n")
    held = penstock("ingest", "watch", batch)
    assert (held.code, f"penstock ingest release {batch}" in held.out) == (1, True)
    assert "is released: pending" in penstock("ingest", "release", "batch", batch).text
    with still.working("batch-pending"):
        until(lambda: status(penstock, batch) == "processing")
    assert "2 open jobs" in penstock("ingest", "priority", batch, "7").text
    jobs = penstock("ingest", "jobs", batch, "--json").document["jobs"]
    assert [job["priority"] for job in jobs] == [7, 7]
    one, two = (job["id"] for job in jobs)
    assert "has priority 3: pending" in penstock("ingest", "priority", "job", one, "3").text
    assert penstock("ingest", "hold", one, "--why", "wait").text.endswith(" is held\n")
    assert "2 jobs of batch" in penstock("ingest", "hold", batch, "--why", "all").text
    refused = penstock("ingest", "hold", batch, "--why", "all")
    assert (refused.code, "is pending: 0 have begun" in refused.complaint) == (1, True)
    penstock("ingest", "release", two)
    stopped = penstock("ingest", "fail", two, "--why", "wrong map")
    assert "is stopped: failed" in stopped.text
    still.work()
    waiting = penstock("ingest", "watch", batch)
    assert (waiting.code, "1 held, 1 failed" in waiting.out) == (1, True)
    assert "is released: pending" in penstock("ingest", "release", "job", one).text
    with still.working():
        until(lambda: status(penstock, batch) == "failed")
    table = penstock("ingest", "resume", batch)
    assert (table.code, "pending" in table.out) == (0, True)
    nothing = penstock("ingest", "resume", batch)
    assert (nothing.code, "nothing was resumed" in nothing.out) == (0, True)


def test_what_failed_for_its_payload_is_not_resumed(
    still: Site, penstock: Terminal, films: str
) -> None:
    cut_off = still.folder / "cut-off.checkm"
    cut_off.write_text("#%checkm_0.7\n")
    batch = submitted(penstock, films, cut_off.as_uri(), "--type", "object_manifest")
    still.work()
    (job,) = penstock("ingest", "jobs", batch, "--json").document["jobs"]
    refused = penstock("ingest", "resume", job["id"])
    assert (refused.code, "submit it again" in refused.complaint) == (1, True)
    table = penstock("ingest", "resume", batch)
    assert (table.code, "cannot be resumed" in table.out) == (1, True)
    unread = submitted(penstock, films, cut_off.as_uri())
    still.work()
    assert "there is nothing to report" in penstock("ingest", "update-report", unread).complaint
    again = penstock("ingest", "resume", unread)
    assert (again.code, "is pending: its payload" in again.out) == (0, True)
    still.work()


def test_a_collection_and_the_queue_are_held(
    still: Site, penstock: Terminal, films: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is held" in penstock("ingest", "hold", "collection", films, "--why", "titles").text
    assert "titles" in penstock("ingest", "collections", "list").text
    batch = submitted(penstock, films, still.serve("nine", b"9"))
    with still.working():
        until(lambda: status(penstock, batch) == "held")
    refused = penstock("ingest", "release", batch)
    assert (refused.code, "release it first" in refused.complaint) == (1, True)
    shown = penstock("ingest", "show", batch)
    assert f"collection {films} is held by local: titles; release it" in shown.text
    assert f"penstock ingest release {batch}" in shown.err
    assert f"collection {films} is held since" in penstock("ingest", "queue").text
    held = ["ingest", "hold", "queue", "--why", "the disk is full"]
    assert penstock(*held).code == 0
    waiting = penstock("ingest", "release", "collection", films)
    assert "the queue is held by local: the disk is full" in waiting.err
    not_held = penstock("ingest", "release", "collection", films)
    assert f"collection {films} is not held; the queue is held by local" in not_held.complaint
    assert "`penstock ingest release queue --why REASON`" in not_held.complaint
    assert penstock("ingest", "release", "queue").code == 0
    assert penstock("ingest", "hold", "collection", films, "--why", "titles").code == 0
    freed = penstock("ingest", "release", "collection", films)
    assert f"penstock ingest release held --collection {films}" in freed.err
    assert (
        "1 held batches and jobs are released"
        in penstock("ingest", "release", "held", "--collection", films).text
    )
    assert penstock("ingest", "hold", "queue", "--why", "disk").text == "the queue is held\n"
    assert "the queue is held by local: disk; release it" in still.work()
    assert status(penstock, batch) == "pending"
    assert "the queue is held by local: disk; release it" in penstock("ingest", "show", batch).text

    def sleep(seconds: float) -> None:
        desk = still.server.plane.desk
        desk.release(AdminAction("ann"), IngestHoldKind.QUEUE)
        assert "no work is left" in still.work()

    watch_time = SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
    monkeypatch.setattr(watch, "time", watch_time)
    watched = penstock("ingest", "watch", batch).text
    assert "the queue is held by local: disk; release it: penstock ingest re" in watched
    assert "is completed; 1 completed" in watched
    assert penstock("ingest", "hold", "queue", "--why", "disk").code == 0
    assert penstock("ingest", "release", "queue", "--json").document["held"] is None


def test_show_says_what_can_be_done(still: Site, penstock: Terminal, films: str) -> None:
    missing = submitted(penstock, films, str(still.manifest({}, missing=["one", "two"])))
    cut_off = still.folder / "cut.checkm"
    cut_off.write_text("#%checkm_0.7\n")
    hopeless = submitted(penstock, films, cut_off.as_uri(), "--type", "object_manifest")
    unread = submitted(penstock, films, cut_off.as_uri())
    still.work()
    assert f"penstock ingest resume {missing}" in penstock("ingest", "show", missing).err
    for how in ("show", "watch"):
        told = penstock("ingest", how, hopeless)
        assert "its jobs cannot be resumed: correct the payload" in told.out + told.err
        assert "ingest resume" not in told.out + told.err
        told = penstock("ingest", how, unread)
        assert (
            f"when its payload can be read: penstock ingest resume {unread}" in told.out + told.err
        )
    jobs = penstock("ingest", "jobs", missing, "--json").document["jobs"]
    penstock("ingest", "delete", jobs[0]["id"], "--yes")
    assert re.search(r"jobs +1: 1 failed; 1 deleted *\n", penstock("ingest", "show", missing).text)
    penstock("ingest", "delete", jobs[1]["id"], "--yes")
    shown = penstock("ingest", "show", missing)
    assert re.search(r"jobs +none; 2 deleted *\n", shown.text)
    assert f"penstock ingest update-report {missing}" in shown.err


def test_deletion_warns_and_asks(
    still: Site, penstock: Terminal, films: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = still.manifest({"ten": b"10"}, missing=["eleven"])
    batch = submitted(penstock, films, str(manifest))
    with still.working():
        until(lambda: status(penstock, batch) == "failed")
    failed = penstock("ingest", "jobs", batch, "--status", "failed", "--json").document["jobs"]
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    refused = penstock("ingest", "delete", failed[0]["id"])
    assert refused.code == 2
    assert "its depositor is not notified" in refused.complaint
    assert refused.complaint.endswith("--yes")
    monkeypatch.setattr(sys, "stdin", person("n\n"))
    declined = penstock("ingest", "delete", failed[0]["id"])
    assert (declined.code, "nothing was deleted" in declined.err) == (1, True)
    monkeypatch.setattr(sys, "stdin", person("y\n"))
    assert "is deleted" in penstock("ingest", "delete", "job", failed[0]["id"]).text
    assert penstock("ingest", "job", failed[0]["id"]).code == 1
    gone = penstock("ingest", "delete", batch, "--yes", "--json").document
    assert gone == {"deleted": batch}
    assert penstock("ingest", "delete", batch, "--yes").code == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["hold", "--why", "x"], "the target is missing"),
        (["hold", "everything", "--why", "x"], "write one of: queue, collection NAME"),
        (["hold", "queue"], "--why"),
        (["hold", "job", "bid0000000001", "--why", "x"], "is a batch, not a job"),
        (["resume", "queue"], "write one of: batch BATCH, job JOB"),
        (["release", "queue", "--collection", "maps"], "penstock ingest release held"),
        (["priority", "bid0000000001"], "from 0 to 99"),
        (["priority", "bid0000000001", "first"], "from 0 to 99"),
        (["show", "jid0000000001"], "is a job, not a batch"),
        (["fly"], "penstock ingest --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_words_end_with_2_and_say_what_to_write(
    penstock: Terminal, films: str, arguments: list[str], told: str
) -> None:
    done = penstock("ingest", *arguments)
    assert done.code == 2
    assert told in done.complaint


def test_a_check_finds_and_repairs(still: Site, penstock: Terminal, films: str) -> None:
    batch = submitted(penstock, films, still.serve("thirteen", b"13"))
    with still.working("batch-pending"):
        until(lambda: status(penstock, batch) == "processing")
    assert penstock("ingest", "check").text == "there are no faults\n"
    database = sqlite3.connect(still.folder / "penstock.db")
    with closing(database), database:
        database.execute("UPDATE ingest_jobs SET locked_by = 'gone' WHERE batch_id = ?", [batch])
    found = penstock("ingest", "check")
    assert found.code == 1
    assert "penstock ingest check --repair" in found.err
    repaired = penstock("ingest", "check", "--repair", "--json").document["findings"]
    assert all(finding["repaired"] for finding in repaired)
    assert repaired
    assert penstock("ingest", "check").text == "there are no faults\n"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (
            [CheckStep(CheckStepKind.PROGRESS, 500, 900, None, None)],
            "the server closed the answer",
        ),
        ([CheckStep(CheckStepKind.END, 500, 900, None, "the queue is away")], "the queue is away"),
    ],
)
def test_a_check_that_does_not_come_to_its_end_says_so(
    penstock: Terminal,
    films: str,
    steps: list[CheckStep],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Client, "check_ingest", lambda client, repair: iter(steps))
    done = penstock("ingest", "check")
    assert done.code == 1
    assert told in done.complaint
    assert done.out == ""

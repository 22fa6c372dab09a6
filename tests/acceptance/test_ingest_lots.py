"""A reported batch is a lot of its collection's dataset, and arcs read it once it is complete."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from penstock.arcs.commands import ApplyArc
from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.overview import get_arc_lot, manifest_lines
from penstock.arcs.queries import manifest_rows, read_items
from penstock.arcs.spec import Arc, Input, Output, Workload
from penstock.catalog.commands import DatasetName
from penstock.clock import SECOND
from penstock.errors import Busy, NotFound, Unavailable
from penstock.ids import dataset_id
from penstock.ingest.collections import DeleteCollection
from penstock.ingest.intake.checkm import CheckmRow, ManifestKind, write
from penstock.ingest.lots import CloseLot, publish_batch
from penstock.ingest.models import Batch
from penstock.ingest.notifications.reports import make_report
from penstock.ingest.stages import STAGE_NAMES, lots, reporting
from penstock.locks.commands import ClaimLots, ClaimRef, CompleteClaims, RegisterLots, WireJob
from penstock.locks.queries.lots import show_lot
from penstock.lots.manifests import Item
from penstock.lots.outbox import events_after
from penstock.objects.uris import find_object
from penstock.schema.arcs import ManifestLine
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import Interval, parse_interval
from penstock.schema.provenance import VerifyStepKind
from penstock.states import BatchState, IngestState
from penstock.store.write_queue import WriteQueue
from tests.acceptance import arc_workloads
from tests.acceptance.ingest_site import ADMIN, Site, row
from tests.contract.provenance_site import name_of, verify
from tests.doors.waiting import until
from tests.invariants import assert_all_holds
from tests.web import content, status

NS = "default"
BODIES = {"köln map.csv": b"x,y\n1,2\n", "legend.txt": b"one\n"}


def _path(batch: str, file: str) -> str:
    return f"/{batch}/{hashlib.sha256(file.encode()).hexdigest()[:8]}"


def deposit(site: Site, bodies: dict[str, bytes], *missing: str, name: str = "one") -> Batch:
    """A batch of files, some of which are not there yet."""
    rows: list[CheckmRow] = []
    for file, body in bodies.items():
        url = site.web.on(_path(name, file), status(404) if file in missing else content(body))
        rows.append(row(url, body, name=file))
    return site.deposit(site.web.on(f"/{name}.checkm", content(write(ManifestKind.FILES, rows))))


def mend(site: Site, batch: Batch, bodies: dict[str, bytes], name: str = "one") -> Batch:
    """What was missing is there now: resume, and have it reported."""
    for file, body in bodies.items():
        site.web.on(_path(name, file), content(body))
    site.desk.resume_batch(ADMIN, batch.id)
    with site.working():
        site.at_rest(batch)
        site.desk.update_report(ADMIN, batch.id)
        return site.ended(batch)


def lines(site: Site, lot: str) -> list[ManifestLine]:
    with site.plane.catalog.read() as tx:
        return manifest_lines(tx, dataset_id(NS, "maps"), EntityId(NS, "maps"), lot)


def items(site: Site, lot: str) -> list[Item]:
    with site.plane.catalog.read() as tx:
        version = show_lot(tx, NS, "maps", lot).version
        [found] = manifest_rows(tx, [version or ""]).values()
    content = site.plane.objects.get(found.key)
    assert hashlib.sha256(content).hexdigest() == found.digest
    return list(read_items(site.plane.objects, found))


def status_of(site: Site, lot: str) -> str | None:
    with site.plane.catalog.read() as tx:
        try:
            return show_lot(tx, NS, "maps", lot).status
        except NotFound:
            return None


def told(site: Site) -> list[tuple[str, str, str]]:
    with site.plane.catalog.read() as tx:
        found = events_after(tx, 0, 100)
    return [(e.kind, e.lot, e.state) for e in found if e.dataset.name == "maps"]


def shown(site: Site, lot: str) -> list[str]:
    """The states that the keys of a lot tell which everybody looks at."""
    folder = f"datasets/namespace={NS}/name=maps/version=1/lot={lot}"
    keys = [entry.key.removeprefix(f"{folder}/") for entry in site.plane.objects.list(folder)]
    return [key.split("/")[0] for key in keys if "attempt=" not in key]


@contextmanager
def an_arc(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An arc that subscribes to what is deposited, and an engine."""
    monkeypatch.setenv(arc_workloads.FOLDER, str(folder))
    arc = Arc(
        name="shout",
        inputs=(Input(dataset="maps"),),
        outputs=(Output(dataset="loud"),),
        workload=Workload(function=f"{arc_workloads.__name__}:shout"),
    )
    site.plane.catalog.submit(ApplyArc("ann", arc)).result()
    plane = site.plane
    with (
        LocalThreads(2) as threads,
        Engine(plane.catalog, plane.objects, threads, plane.clock, owner="e", sweep_seconds=0.05),
    ):
        yield


def shouted(site: Site, batch: Batch) -> set[bytes]:
    """What the arc has made of the batch's lot."""

    def made() -> list[ManifestLine]:
        with site.plane.catalog.read() as tx:
            return list(get_arc_lot(tx, NS, "shout", batch.id).manifests)

    until(lambda: bool(made()))
    [line] = made()
    assert (line.state, line.uris, line.bytes) == ("complete", 2, 12)
    with site.plane.catalog.read() as tx:
        rows = manifest_rows(tx, [line.version])
    objects = site.plane.objects
    found = read_items(objects, rows[line.version])
    return {objects.get(item.uri.removeprefix(f"{objects.url}/")) for item in found}


def test_a_reported_batch_is_a_lot_with_a_bill_of_materials(site: Site) -> None:
    [batch] = site.run(deposit(site, BODIES))
    assert batch.status is BatchState.COMPLETED
    assert status_of(site, batch.id) == "READY"
    assert told(site) == [("published", batch.id, "complete")]
    assert shown(site, batch.id) == ["state=complete"]
    arks = {job.configuration.payload_name: job.identifiers.primary for job in site.jobs(batch)}
    found = {item.uri.rpartition("/")[2]: item for item in items(site, batch.id)}
    assert found.keys() == BODIES.keys() == arks.keys()
    for name, body in BODIES.items():
        digest = f"sha-512:{hashlib.sha512(body).hexdigest()}"
        item = found[name]
        assert (item.size, item.digest, item.ark) == (len(body), digest, arks[name])
    assert_all_holds(site.plane.settings)


def test_it_is_partial_while_a_job_has_failed_and_then_arcs_read_it(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with an_arc(site, tmp_path, monkeypatch):
        [batch] = site.run(deposit(site, BODIES, "legend.txt"))
        assert batch.status is BatchState.FAILED
        assert status_of(site, batch.id) == "PENDING"
        assert told(site) == [("announced", batch.id, "partial")]
        assert shown(site, batch.id) == ["state=partial"]
        assert [item.uri.rpartition("/")[2] for item in items(site, batch.id)] == ["köln map.csv"]
        assert site.plane.catalog.submit(ClaimLots(NS, "shout", "w", manager="arcs")).result() == []
        batch = mend(site, batch, {"legend.txt": BODIES["legend.txt"]})
        assert batch.status is BatchState.COMPLETED
        assert status_of(site, batch.id) == "READY"
        assert told(site)[1:] == [("published", batch.id, "complete")]
        assert shown(site, batch.id) == ["state=complete"]
        assert shouted(site, batch) == {body.upper() for body in BODIES.values()}


def test_arcs_read_objects_of_a_separate_storage(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.make_collection(storage=f"file://{tmp_path}/a vault of its own")
    with an_arc(site, tmp_path, monkeypatch):
        [batch] = site.run(deposit(site, BODIES))
        assert shouted(site, batch) == {body.upper() for body in BODIES.values()}
    [*_, end] = verify(site.plane, name_of(site.plane, NS, "maps"))
    assert (end.kind, end.done.faults, end.done.files) == (VerifyStepKind.END, 0, len(BODIES))
    for item in items(site, batch.id):
        store, key = find_object(site.plane.objects, item.uri)
        path = store.path(key)
        assert path is not None
        assert path.as_posix() == url2pathname(urlsplit(item.uri).path)


def test_a_batch_all_of_whose_jobs_were_deleted_is_empty(site: Site) -> None:
    [batch] = site.run(deposit(site, BODIES, *BODIES))
    assert told(site) == [("announced", batch.id, "partial")]
    for job in site.jobs(batch):
        site.desk.delete_job(ADMIN, job.id, confirmed=True)
    site.desk.update_report(ADMIN, batch.id)
    [batch] = site.run(batch)
    assert batch.status is BatchState.COMPLETED
    assert told(site)[1:] == [("published", batch.id, "empty")]
    assert (status_of(site, batch.id), items(site, batch.id)) == ("READY", [])


def up_to_reporting(site: Site, batch: Batch) -> Batch:
    """All but the report is done."""
    with site.working(*(stage for stage in STAGE_NAMES if "report" not in stage)):
        until(lambda: site.batch(batch).status is BatchState.REPORTING)
    return site.batch(batch)


def publish(site: Site, batch: Batch) -> None:
    """What reporting does first, by a worker that dies after it."""
    lines = [line for _, line in reporting.lines_of(site.context, batch)]
    report = make_report(batch, lines, None, site.clock())
    jobs = site.jobs(batch)
    done = [job.configuration.key for job in jobs if job.status is IngestState.COMPLETED]
    publish_batch(site.context, batch, report, done)


def test_a_repeated_report_publishes_once(site: Site) -> None:
    batch = up_to_reporting(site, deposit(site, BODIES))
    publish(site, batch)
    site.clock.ahead += 7 * SECOND
    publish(site, batch)
    [batch] = site.run(batch)
    assert batch.status is BatchState.COMPLETED
    assert told(site) == [("published", batch.id, "complete")]
    assert len(lines(site, batch.id)) == 1
    assert len(items(site, batch.id)) == 2


def test_a_worker_that_dies_before_the_commit_leaves_no_lot_and_the_next_makes_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = up_to_reporting(site, deposit(site, BODIES))
    with monkeypatch.context() as patch:

        def die(command: object) -> None:
            raise Unavailable("the machine is gone")

        patch.setattr(site.context, "write", die)
        with pytest.raises(Unavailable):
            publish(site, batch)
    assert (status_of(site, batch.id), told(site)) == (None, [])
    [batch] = site.run(batch)
    assert len(lines(site, batch.id)) == 1
    assert_all_holds(site.plane.settings)


def test_more_that_completed_before_the_same_report_is_in_the_lot(site: Site) -> None:
    batch = deposit(site, BODIES, "legend.txt")
    batch = up_to_reporting(site, batch)
    publish(site, batch)  # and the worker dies
    assert status_of(site, batch.id) == "PENDING"
    site.web.on(_path("one", "legend.txt"), content(BODIES["legend.txt"]))
    [failed] = [job for job in site.jobs(batch) if job.status is IngestState.FAILED]
    site.desk.resume_job(ADMIN, failed.id)
    with site.working(*(stage for stage in STAGE_NAMES if "report" not in stage)):
        until(lambda: site.job(failed).status is IngestState.COMPLETED)
    [batch] = site.run(batch)
    assert (batch.status, status_of(site, batch.id)) == (BatchState.COMPLETED, "READY")
    assert len(items(site, batch.id)) == 2


def test_a_report_names_a_lot_that_a_job_makes(site: Site) -> None:
    batch = up_to_reporting(site, deposit(site, BODIES))
    plane, maps, other = site.plane, DatasetName(NS, "maps"), DatasetName(NS, "other")
    plane.catalog.submit(WireJob(NS, "etl", (other,), (maps,))).result()
    plane.catalog.submit(RegisterLots(NS, "other", (batch.id,), "ann")).result()
    [claim] = plane.catalog.submit(ClaimLots(NS, "etl", "w")).result()
    plane.catalog.submit(CompleteClaims((ClaimRef(claim.id, claim.token),))).result()
    [batch] = site.run(batch)
    assert batch.status is BatchState.COMPLETED
    assert batch.message.startswith("it is not published as a lot: lot ")
    assert "made by a job, and cannot be registered" in batch.message


# Lots that are intervals.


@pytest.fixture
def hourly(site: Site) -> Site:
    """A collection whose lots are intervals of five minutes; one has just begun."""
    site.make_collection(lots="PT5M")
    current = parse_interval(Interval("PT5M").lot_at(site.clock()))
    assert current is not None
    site.clock.ahead = current.end + SECOND - site.clock()
    return site


def now_lot(site: Site) -> str:
    return Interval("PT5M").lot_at(site.clock())


def pass_interval(site: Site) -> None:
    site.clock.ahead += 306 * SECOND


def test_batches_that_complete_in_one_interval_are_one_lot_when_it_is_over(hourly: Site) -> None:
    lot = now_lot(hourly)
    first, second = deposit(hourly, BODIES), deposit(hourly, {"c.txt": b"c"}, name="two")
    hourly.run(first, second)
    assert lots.go_round(hourly.context) == 0
    assert (status_of(hourly, lot), told(hourly)) == (None, [])
    pass_interval(hourly)
    assert lots.go_round(hourly.context) == 1
    assert told(hourly) == [("published", lot, "complete")]
    assert shown(hourly, lot) == ["state=complete"]
    assert len(items(hourly, lot)) == 3
    assert lots.go_round(hourly.context) == 0
    assert_all_holds(hourly.plane.settings)


def test_a_lot_that_cannot_be_closed_just_now_is_no_stumble(
    hourly: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hourly.run(deposit(hourly, BODIES))
    pass_interval(hourly)
    submit = WriteQueue.submit
    refused: list[str] = []

    def full(catalog: WriteQueue, command: Any) -> Any:
        if type(command).__name__ == CloseLot.__name__ and not refused:
            refused.append(command.lot)
            raise Busy("64 writes are waiting already; send this again in a second")
        return submit(catalog, command)

    monkeypatch.setattr(WriteQueue, "submit", full)
    with hourly.working("lots"):
        until(lambda: told(hourly) != [])
    assert refused != []
    assert "and continues" not in caplog.text
    assert "lots: 64 writes are waiting already" in caplog.text


def test_a_batch_that_comes_late_amends_the_lot(hourly: Site) -> None:
    lot = now_lot(hourly)
    hourly.run(deposit(hourly, BODIES))
    late = up_to_reporting(hourly, deposit(hourly, {"c.txt": b"c"}, name="two"))
    pass_interval(hourly)
    assert lots.go_round(hourly.context) == 1
    assert len(items(hourly, lot)) == 2
    hourly.run(late)
    until(lambda: lots.go_round(hourly.context) >= 0 and len(told(hourly)) == 2)
    assert told(hourly) == [("published", lot, "complete")] * 2
    assert len(items(hourly, lot)) == 3


def test_a_batch_with_a_failed_job_is_in_the_interval_in_which_it_is_mended(hourly: Site) -> None:
    [batch] = hourly.run(deposit(hourly, BODIES, "legend.txt"))
    pass_interval(hourly)
    assert lots.go_round(hourly.context) == 0
    assert told(hourly) == []
    lot = now_lot(hourly)
    mend(hourly, batch, {"legend.txt": BODIES["legend.txt"]})
    pass_interval(hourly)
    until(lambda: lots.go_round(hourly.context) >= 0 and bool(told(hourly)))
    assert told(hourly) == [("published", lot, "complete")]


def test_an_interval_that_a_job_makes_is_logged_and_skipped(hourly: Site) -> None:
    lot = now_lot(hourly)
    plane, maps, other = hourly.plane, DatasetName(NS, "maps"), DatasetName(NS, "other")
    plane.catalog.submit(WireJob(NS, "etl", (other,), (maps,))).result()
    plane.catalog.submit(RegisterLots(NS, "other", (lot,), "ann")).result()
    [claim] = plane.catalog.submit(ClaimLots(NS, "etl", "w")).result()
    plane.catalog.submit(CompleteClaims((ClaimRef(claim.id, claim.token),))).result()
    [batch] = hourly.run(deposit(hourly, BODIES))
    assert "made by a job, and cannot be registered" in batch.message
    pass_interval(hourly)
    [next_batch] = hourly.run(deposit(hourly, {"c.txt": b"c"}, name="two"))
    assert next_batch.message == ""


def _is_known(site: Site, collection: str) -> bool:
    try:
        site.context.collections.get(collection)
    except NotFound:
        return False
    return True


def test_a_batch_of_a_deleted_collection_fails_with_a_reason(site: Site) -> None:
    site.make_collection("brief")
    [batch] = site.run(site.deposit(f"{site.web.url}/gone.csv", "brief"))
    told = len(site.letters())
    site.plane.catalog.submit(DeleteCollection(ADMIN.who, "brief")).result()
    until(lambda: not _is_known(site, "brief"))  # a profile is kept for a second
    site.desk.update_report(ADMIN, batch.id)
    with site.working():
        ended = site.ended(batch)
    assert ended.status is BatchState.FAILED
    assert "it is not mailed: there is no collection 'brief'" in ended.message
    assert len(site.letters()) == told
    assert len(site.report(batch).still_open) == 1

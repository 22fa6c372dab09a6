"""Invariants of everything that was ingested, after any kills."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ocfl import StorageRoot

from penstock.catalog.rows import RunRow
from penstock.db import open_database
from penstock.ingest.archive.register import LocalIdRow, MintedRow, StoredRow, WriterRow
from penstock.ingest.context import OCFL
from penstock.ingest.models import IngestJob
from penstock.ingest.opening import IN_DATABASE
from penstock.schema.ingest import Finding
from penstock.states import INGEST_STAGES, BatchState, IngestState, RunState
from tests.invariants import assert_all_holds
from tests.simulation.consistency import problems
from tests.simulation.ingest_site import BAD, COLLECTION, Site
from tests.simulation.tables import STATEMENTS

# An id is given out before what it names is made: who is killed in between leaves it unused.
UNUSED_ID = "was numbered, but never created"


class Register(NamedTuple):
    """The objects and runs in the database."""

    minted: list[MintedRow]
    local_ids: list[LocalIdRow]
    writers: list[WriterRow]
    stored: list[StoredRow]
    runs: list[RunRow]


def check_promises(site: Site, *, somebody_slept: bool = False) -> list[IngestJob]:
    """Fail if anything is lost, left over or duplicated; return all jobs.

    A worker that slept and was killed before it noticed may leave files. They go with the batch.
    """
    check_batches(site)
    jobs = all_jobs(site)
    for job in jobs:
        check_job(job)
    check_queue(site)
    register = read_register(site)
    completed = [job for job in jobs if job.status is IngestState.COMPLETED]
    check_identifiers(register, jobs)
    check_objects(site, register, completed)
    check_runs(register, completed)
    if not somebody_slept:
        check_folders(completed)
    check_callbacks(site, completed)
    assert_all_holds(site.plane.settings)
    return jobs


def all_jobs(site: Site) -> list[IngestJob]:
    jobs = []
    for batch_id in site.batches:
        batch_jobs = site.store.jobs(batch_id, 100_000)
        rows = [job.configuration.row for job in batch_jobs]
        assert rows == list(range(len(batch_jobs))), f"{batch_id} has jobs for rows {rows}"
        jobs += batch_jobs
    assert sum(line.jobs for line in site.store.tally()) == len(jobs)
    return jobs


def check_batches(site: Site) -> None:
    """Check that every batch ended correctly, with a report."""
    for batch_id, expected in site.batches.items():
        batch = site.store.batch(batch_id)
        assert (batch.status, batch.locked_by) == (expected, ""), batch
        assert batch.report is not None, batch
        assert batch.jobs == len(site.store.jobs(batch_id, 100_000)), batch
        tally = {line.status: line.jobs for line in site.store.tally(batch_id)}
        assert bool(tally.get(IngestState.FAILED)) == (expected is BatchState.FAILED), batch


def check_job(job: IngestJob) -> None:
    """Check that the job passed each stage once, in order, to its correct end."""
    is_bad = job.configuration.payload_name.startswith(BAD)
    assert job.status is (IngestState.FAILED if is_bad else IngestState.COMPLETED), job
    assert job.locked_by == "", job
    seen = [step.status for step in job.history]
    assert seen == [*INGEST_STAGES[: len(seen) - 1], job.status], job
    assert is_bad or len(seen) == len(INGEST_STAGES) + 1, job
    assert bool(job.message) == is_bad, job


def check_queue(site: Site) -> None:
    """Check that the queue is empty except, in ZooKeeper, for unused ids."""
    findings = site.store.check(repair=True)
    if site.plane.settings.queue != IN_DATABASE:
        findings = [finding for finding in findings if not _is_unused_id(finding)]
    assert findings == []
    assert site.store.check() == []


def _is_unused_id(finding: Finding) -> bool:
    return finding.what == UNUSED_ID and finding.repaired


def read_register(site: Site) -> Register:
    url = site.plane.settings.database
    with closing(open_database(url, extra=[STATEMENTS])) as database, database.read() as tx:
        assert problems(tx) == []
        return Register(
            tx.rows(MintedRow, "every_minted_ark"),
            tx.rows(LocalIdRow, "every_local_id"),
            tx.rows(WriterRow, "every_ark_writer"),
            tx.rows(StoredRow, "every_stored_object"),
            tx.rows(RunRow, "every_run"),
        )


def check_identifiers(register: Register, jobs: list[IngestJob]) -> None:
    """Check that each object has one ARK and none was minted twice."""
    minted = {row.key: row.ark for row in register.minted}
    assert len(minted) == len(register.minted)
    assert len(set(minted.values())) == len(minted), "an ARK was minted twice"
    assert minted.keys() <= {job.configuration.key for job in jobs}
    bound = {row.local_id: row.ark for row in register.local_ids}
    for job in jobs:
        ark, key = job.identifiers.primary, job.configuration.key
        if job.status is not IngestState.COMPLETED:
            assert ark is None
            assert key not in minted
            continue
        assert minted.get(key, ark) == ark
        assert ark in minted.values(), f"{job.id} has {ark}, which nobody minted"
        assert {bound[name] for name in job.identifiers.local_id} <= {ark}
    assert len(minted) == len({job.identifiers.primary for job in jobs} - {None})
    assert register.writers == []


def check_objects(site: Site, register: Register, completed: list[IngestJob]) -> None:
    """Check that each completed job made one version of one object, in a valid store."""
    folder = Path(urlsplit(site.plane.settings.objects).path) / OCFL
    arks = {job.identifiers.primary or "" for job in completed}
    root = StorageRoot(root=str(folder))
    assert root.validate(log_warnings=True), root.log.status_str()
    assert root.good_objects == root.num_objects == len(arks)
    depository = site.plane.context.storage.depository(
        site.plane.context.collections.get(COLLECTION)
    )
    versions = {
        (ark, int(name[1:]), version.key)
        for ark in arks
        for name, version in depository.read(ark).versions.items()
    }
    counts = Counter(key for _, _, key in versions)
    assert counts == Counter(job.configuration.key for job in completed)
    assert versions == {(row.ark, row.version, row.key) for row in register.stored}
    assert len(register.stored) == len(completed)
    by_key = {job.configuration.key: job for job in completed}
    for row in register.stored:
        job = by_key[row.key]
        assert (row.ark, row.job_id) == (job.identifiers.primary, job.id)
        held = depository.files(row.ark, row.version)
        assert (row.files, row.bytes) == (len(held), sum(file.size or 0 for file in held))


def check_runs(register: Register, completed: list[IngestJob]) -> None:
    """Check that each completed job is one completed run in the catalog."""
    assert {run.state for run in register.runs} <= {RunState.COMPLETED}
    assert sorted(run.id for run in register.runs) == sorted(row.run_id for row in register.stored)
    assert len(register.runs) == len(completed)


def check_folders(completed: list[IngestJob]) -> None:
    """Check that no working files are left."""
    left = [job for job in completed if Path(job.configuration.working_dir).exists()]
    assert left == []


def check_callbacks(site: Site, completed: list[IngestJob]) -> None:
    """Check that callbacks reported each completed job, always under the same key."""
    expected = set()
    if site.plane.context.collections.get(COLLECTION).callback is not None:
        expected = {job.configuration.key for job in completed}
    assert set(site.delivered) == expected

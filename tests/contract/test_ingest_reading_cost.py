"""The cost of reads of ingest after many deposits: no long scans."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import ids
from penstock.catalog.rows import replace
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import load_statements
from penstock.ingest.archive.register import ArkRow, LocalIdRow, MintedRow, StoredRow, WriterRow
from penstock.ingest.lots import BatchLotRow
from penstock.ingest.queue.sql.rows import (
    BatchRow,
    CounterRow,
    IngestHoldRow,
    IngestJobRow,
    SessionRow,
    TallyRow,
)
from penstock.ingest.queue.sql.tables import ALL_BATCHES
from penstock.ingest.search_keys import SearchKeyKind, SearchKeyRow
from penstock.ingest.transitions import side_of
from penstock.states import BatchState, IngestState, ManifestState
from tests.contract.catalog_rows import NAMESPACE, NOW, dataset
from tests.plans import costly_steps, filled_database, is_parameter_scan, reads

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("ingest_reading_cost")

DONE = 20_000  # batches, with a job each
WAITING = 40_000  # jobs of the large batch: most of all jobs, after those of the others
BACKLOG = 20_000  # the newest batches, pending, of another collection
FEW = 5  # in each state, free and locked
PAGE = 50

MAPS = "maps"  # the collection of nearly all completed batches
PHOTOS = "photos"  # one with a few old batches
LETTERS = "letters"  # one with a backlog
DEPOSITS = dataset("deposits")
SESSION = "worker/1"
LARGE = f"bid{DONE + 1:010}"
LAST = "bid9999999999"

# The statements of `penstock ingest check`, which reads everything.
CHECKS = {
    "ingest_jobs_without_batch",
    "ingest_locks_without_session",
    "ingest_stuck_batches",
    "ingest_wrong_tallies",
    "ingest_wrong_totals",
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Twenty thousand completed batches, as many pending ones, a large one, some in each state."""
    with filled_database(request, tmp_path_factory, _fill) as url:
        yield url


def _fill(tx: Transaction) -> None:
    batches, jobs = _batches(), _jobs()
    tx.write("put_ingest_batches", batches)
    tx.write("put_ingest_jobs", jobs)
    tx.write("put_ingest_tallies", _tallies(jobs))
    tx.write("put_ingest_counters", [CounterRow("batch", len(batches)), CounterRow("job", 99_999)])
    tx.write("put_ingest_sessions", [SessionRow(SESSION, "worker", NOW, 10)])
    tx.write("put_ingest_holds", [IngestHoldRow("collection", PHOTOS, "ann", "full", NOW)])
    for name in (MAPS, PHOTOS, LETTERS):
        tx.execute("put_collection", name=name, profile="{}", now=NOW)
    tx.write("put_datasets", [DEPOSITS])
    _fill_register(tx)
    _fill_lots_and_uploads(tx)


def _batch(number: int, status: BatchState, locked_by: str = "", jobs: int = 1) -> BatchRow:
    return BatchRow(
        id=f"bid{number:010}",
        collection=MAPS if number > FEW else PHOTOS,
        submission="{}",
        key_hash=f"key {number}",
        status=status,
        last_modified=NOW + number,
        message="",
        jobs=jobs,
        report=None,
        version=1,
        locked_by=locked_by,
    )


def _batches() -> list[BatchRow]:
    """The completed batches, the large one, and some in every stored state, free and locked."""
    done = [_batch(number, BatchState.COMPLETED) for number in range(1, DONE + 1)]
    states = [state for state in BatchState if state != BatchState.DELETED]
    some = [(state, by) for state in states for by in ("", SESSION) for _ in range(FEW)]
    others = [
        _batch(number, state, by, jobs=0) for number, (state, by) in enumerate(some, DONE + 2)
    ]
    large = _batch(DONE + 1, BatchState.PROCESSING, jobs=WAITING)
    last = range(DONE + len(others) + 2, DONE + len(others) + 2 + BACKLOG)
    backlog = [replace(_batch(number, BatchState.PENDING), collection=LETTERS) for number in last]
    return [*done, large, *others, *backlog]


def _job(number: int, batch_id: str, status: IngestState, locked_by: str = "") -> IngestJobRow:
    return IngestJobRow(
        id=f"jid{number:010}",
        batch_id=batch_id,
        configuration="{}",
        identifiers="{}",
        status=status,
        side=side_of(status),
        last_successful_status=None,
        last_modified=NOW + number,
        retry_count=0,
        message="",
        history="[]",
        can_begin_again=0,
        keeps_priority=0,
        priority=50,
        space_needed=10,
        version=1,
        locked_by=locked_by,
    )


def _jobs() -> list[IngestJobRow]:
    """One of each completed batch; those of the large one, some of them in every state."""
    done = [_job(n, f"bid{n:010}", IngestState.COMPLETED) for n in range(1, DONE + 1)]
    states = [state for state in IngestState if state != IngestState.DELETED]
    some = [(state, by) for state in states for by in ("", SESSION) for _ in range(FEW)]
    some += [(IngestState.PENDING, "")] * (WAITING - len(some))
    return done + [_job(n, LARGE, *each) for n, each in enumerate(some, DONE + 1)]


def _tallies(jobs: list[IngestJobRow]) -> list[TallyRow]:
    counts = Counter((job.batch_id, IngestState(job.status)) for job in jobs)
    for job in jobs:
        counts[ALL_BATCHES, IngestState(job.status)] += 1
    return [TallyRow(*key, count, 10 * count) for key, count in counts.items()]


def _ark(number: int) -> str:
    return f"ark:/99999/fk4{number:06}"


def _stored(number: int) -> StoredRow:
    return StoredRow(
        ark=_ark(number),
        version=1,
        key=f"deposit {number}",
        namespace=NAMESPACE,
        collection=MAPS,
        batch_id=f"bid{number:010}",
        job_id=f"jid{number:010}",
        location=f"objects/{number}",
        digest="",
        files=1,
        bytes=10,
        title="",
        run_id=ids.derived_id("a deposit", str(number)),
        at=NOW + number,
    )


def _fill_register(tx: Transaction) -> None:
    numbers = range(1, DONE + 1)
    minted = [MintedRow(f"deposit {n}", "fk4", n, _ark(n), NOW + n) for n in numbers]
    tx.write("put_minted_arks", minted)
    tx.write("put_arks", [ArkRow(_ark(n), NAMESPACE, "") for n in numbers])
    tx.write("put_local_ids", [LocalIdRow(NAMESPACE, "ann", f"map {n}", _ark(n)) for n in numbers])
    tx.write("put_stored_objects", [_stored(n) for n in numbers])
    keys = [("ark", _ark(n)) for n in numbers] + [("file", f"page {n}.tif") for n in numbers]
    tx.write(
        "add_search_keys",
        [SearchKeyRow(NAMESPACE, key, SearchKeyKind(kind), key, MAPS, "", 1) for kind, key in keys],
    )
    # Far more than the work at any one time.
    writers = [WriterRow(_ark(n), f"deposit {n}", f"jid{n:010}") for n in numbers]
    tx.write("put_ark_writers", writers)


def _lot(number: int) -> BatchLotRow:
    return BatchLotRow(
        batch_id=f"bid{number:010}",
        collection=MAPS,
        submitter="ann",
        dataset_id=DEPOSITS.id,
        lot=f"lot {number // 10}",
        report=1,
        state=ManifestState.COMPLETE,
        key="",
        uris=1,
        bytes=10,
        digest="",
        attempt="",
        due_at=NOW if number > DONE - FEW else 0,
        at=NOW + number,
    )


def _fill_lots_and_uploads(tx: Transaction) -> None:
    """Write lots and uploads, of which the last few are unfinished."""
    numbers = range(1, DONE + 1)
    tx.write("put_batch_lots", [_lot(n) for n in numbers])
    for n in numbers:
        holder = "" if n > DONE - FEW else f"bid{n:010}"
        tx.execute("put_upload", url=f"upload {n}", holder=holder, now=NOW)
        tx.execute("spend_upload", url=f"upload {n}", batch_id=holder)
        letter = {"recipients": "[]", "subject": "", "body": "", "next_at": NOW + n}
        tx.execute(
            "add_ingest_letter", message_id=f"letter {n}", batch_id=f"bid{n:010}", now=NOW, **letter
        )
        tx.execute("put_ingest_progress", job_id=f"jid{n:010}", bytes=1, total=2, now=NOW)


def test_ingest_reads_scan_only_their_results(database: Database, url: str) -> None:
    statements = load_statements(database.dialect, capability_folders())
    assert [
        (name, params, steps)
        for name, examples in _examples().items()
        for params in examples
        if (steps := costly_steps(url, statements[name], params, _is_small))
    ] == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_every_read_of_ingest_has_an_example(dialect: str) -> None:
    ingest = [folder for folder in capability_folders() if folder.name == "ingest"]
    statements = load_statements(dialect, ingest)
    assert reads(statements) == {*_examples(), *CHECKS}


def _examples() -> dict[str, list[dict[str, Any]]]:
    """Return the statements with the parameters of typical calls."""
    return _examples_of_batches() | _examples_of_jobs() | _examples_of_register()


def _examples_of_batches() -> dict[str, list[dict[str, Any]]]:
    page = {"before": LAST, "most": PAGE}
    late = {"before": f"bid{PAGE:010}", "most": PAGE}  # the first submission
    collections = [{"collection": name} for name in (MAPS, PHOTOS, LETTERS)]
    states = ["completed", "pending", "held"]
    some = [f"bid{number:010}" for number in range(1, PAGE)]
    return {
        "ingest_batch": [{"id": LARGE}],
        "open_batch_of_collection": collections,
        "list_ingest_batches": [page, late],
        "list_ingest_batches_by_status": [
            {**where, "status": state} for where in (page, late) for state in states
        ],
        "list_ingest_batches_of_collection": [
            {**collection, **where, "status": state}
            for collection in collections
            for where in (page, late)
            for state in (None, *states)
        ],
        "ingest_batches_by_ids": [{"ids": [LARGE, *some]}],
        "ingest_batches_by_keys": [{"ids": [f"key {number}" for number in range(PAGE)]}],
        "free_ingest_batches": [
            {"status": state, "after": after, "most": PAGE}
            for state in states
            for after in ("", "bid0000000002")
        ],
        "ingest_batches_locked": [{"session": SESSION}],
        "ingest_tally": [{"batch_id": LARGE}, {"batch_id": ALL_BATCHES}],
        "ingest_tallies_by_batches": [{"ids": [ALL_BATCHES, LARGE, *some]}],
        "batch_lots_by_ids": [{"ids": some}],
        "batch_lots_of_lot": [{"dataset_id": DEPOSITS.id, "lot": "lot 7"}],
        "due_batch_lots": [{"now": NOW, "most": PAGE}],
    }


def _examples_of_jobs() -> dict[str, list[dict[str, Any]]]:
    last = f"jid{DONE + WAITING - PAGE:010}"  # the page before the last
    pages = [{"batch_id": LARGE, "after": after, "most": PAGE} for after in ("", last)]
    states = ["pending", "failed", "held"]
    places = [
        {"status": state, "priority": priority, "id": after, "most": PAGE}
        for state in ("completed", *states)
        for priority, after in ((-1, ""), (50, f"jid{DONE - PAGE:010}"), (50, last))
    ]
    return {
        "ingest_job": [{"id": last}],
        "list_ingest_jobs": pages,
        "list_ingest_jobs_by_status": [
            {**page, "status": state} for page in pages for state in states
        ],
        "waiting_ingest_jobs": places,
        "newest_failed_ingest_jobs": [{"most": FEW}],
        "free_ingest_jobs": places,
        "ingest_jobs_by_ids": [{"ids": [f"jid{number:010}" for number in range(PAGE)]}],
        "ingest_jobs_locked": [{"session": SESSION}],
        "ingest_locks_of_session": [{"session": SESSION}],
        "ingest_counters_by_names": [{"ids": ["batches", "jobs"]}],
        "ingest_ranges_of_queues": [{"ids": ["queue"]}],
        "ingest_sessions_by_ids": [{"ids": [SESSION]}],
        "silent_ingest_sessions": [{"now": NOW}],
        "all_ingest_holds": [{}],
    }


def _examples_of_register() -> dict[str, list[dict[str, Any]]]:
    keys = {"ids": [f"deposit {number}" for number in range(PAGE)]}
    late = NOW + DONE + 1
    names = [f"map {number}" for number in range(PAGE)]
    return {
        "search_keys": [
            {"namespace": NAMESPACE, "first": first, "last": f"{first}~", "limit": PAGE}
            for first in ("page", "ark:/99999/fk4000007", "nothing")
        ],
        "namespaces_of_search_keys": [{}],
        "collection": [{"name": MAPS}],
        "all_collections": [{}],
        "minted_arks_by_keys": [keys],
        "arks_by_arks": [{"ids": [_ark(number) for number in range(PAGE)]}],
        "local_ids_of_owner": [{"namespace": NAMESPACE, "owner": "ann", "names": names}],
        "ark_writers_by_arks": [{"ids": [_ark(number) for number in range(PAGE)]}],
        "ark_writers_from": [{"after": after, "most": PAGE} for after in ("", _ark(DONE - PAGE))],
        "stored_objects_by_keys": [keys],
        "versions_of_object": [{"ark": _ark(7)}],
        "objects_of_collection": [
            {"collection": MAPS, "before": before, "most": PAGE} for before in (late, NOW + PAGE)
        ],
        "storage_of_collection": [{"collection": name} for name in (MAPS, LETTERS)],
        "upload": [{"url": "upload 7"}],
        "stale_uploads": [{"before": NOW + 1, "most": PAGE}],
        "objects_stored_from": [
            {"after": after, "most": PAGE} for after in ("", _ark(DONE - PAGE))
        ],
        "object_sizes_by_arks": [{"ids": [_ark(number) for number in range(PAGE)]}],
        "due_ingest_letters": [{"now": NOW + FEW, "most": PAGE}],
        "ingest_letter_turn": [{"message_id": "letter 7"}],
        "ingest_progress_by_jobs": [{"ids": [f"jid{number:010}" for number in range(PAGE)]}],
    }


def _is_small(step: str) -> bool:
    """Return whether the scan reads a list parameter, a page of batches or a small table."""
    collections = "SCAN c USING INDEX sqlite_autoindex_collections"
    return is_parameter_scan(step) or step.startswith(
        ("SCAN page", collections, "SCAN s", "SCAN h", "SCAN e")
    )

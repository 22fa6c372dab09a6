"""A long history of one job: many finished lots, written straight into the tables."""

from bench.graph import FOLDER
from bench.ours import JOB, LANDED, NAMESPACE, REFINED, WHO
from bench.vacuum import vacuum
from penstock.arcs.commands import PublishLot
from penstock.clock import SECOND, system_clock
from penstock.config import Settings
from penstock.db import open_database
from penstock.locks.commands import ClaimLots, ClaimRef, RegisterLots, WireJob
from penstock.lots.manifests import (
    DatasetRef,
    Item,
    Manifest,
    ManifestNote,
    encode,
    manifest_key,
    note,
)
from penstock.plane import Plane
from penstock.states import ManifestState

STEP = 60 * SECOND  # between consecutive lots
FINISHED_MAX = 4_000_000  # the count of lot names is at its limit then
_LOT = "part-1000000"
_TOOLS = ("history_makes_runs", "history_makes_versions", "history_makes_lots")
# In this order: the versions of a lot are found as current versions.
_TABLES = (
    "versions", "runs", "run_datasets", "status", "work", "log", "manifests", "events", "datasets",
    "jobs",
)  # fmt: skip


def write_history(url: str, finished: int) -> None:
    """Fill an empty PostgreSQL database with a job that has finished many lots.

    The plane finishes the first lot itself, with an early clock. The others are copies of its rows.
    """
    assert 1 <= finished <= FINISHED_MAX
    _finish_one(url, finished)
    database = open_database(url, extra=[FOLDER])
    try:
        for statement in _TOOLS:
            with database.write() as tx:
                tx.execute(statement)
        for table in _TABLES:
            with database.write() as tx:
                tx.execute(f"history_of_{table}", finished=finished, step=STEP)
        with database.write() as tx:
            tx.execute("history_of_job_versions")
    finally:
        database.close()
    vacuum(url)


def _finish_one(url: str, finished: int) -> None:
    with Plane.open(Settings(database=url), lambda: system_clock() - finished * STEP) as plane:
        submit = plane.catalog.submit
        submit(WireJob(NAMESPACE, JOB, (LANDED,), (REFINED,))).result()
        submit(RegisterLots(NAMESPACE, LANDED.name, (_LOT,), WHO)).result()
        (claim,) = submit(ClaimLots(NAMESPACE, JOB, WHO)).result()
        notes = ((REFINED, made_note(_LOT, claim.id)),)
        submit(PublishLot(ClaimRef(claim.id, claim.token), notes)).result()


def made_note(lot: str, attempt: str) -> ManifestNote:
    """Return the manifest note of an attempt; the object store does not have the manifest."""
    dataset = DatasetRef(REFINED.namespace, REFINED.name)
    manifest = Manifest(
        state=ManifestState.COMPLETE,
        lot=lot,
        dataset=dataset,
        uris=(Item(f"file:///data/{lot}", 1_000),),
        attempt=attempt,
    )
    key = manifest_key(dataset, lot, manifest.state, attempt)
    return note(manifest, key, encode(manifest))

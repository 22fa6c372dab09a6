"""A long history for one job: many lots that it has finished, written straight into the tables."""

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

STEP = 60 * SECOND  # between one lot and the next
FINISHED_MAX = 4_000_000  # the names of lots are full then
_LOT = "part-1000000"
_TOOLS = ("history_makes_runs", "history_makes_versions", "history_makes_lots")
# In this order: the lot's versions are found as those that are current.
_TABLES = (
    "versions", "runs", "run_datasets", "status", "work", "log", "manifests", "events", "datasets",
    "jobs",
)  # fmt: skip


def write_history(url: str, finished: int) -> None:
    """Have an empty PostgreSQL database hold a job that has finished so many lots.

    The plane finishes the first of them itself, long ago by its clock. The others are copies of
    what it wrote.
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
    """What an attempt on a lot would say of its manifest; the object store does not have it."""
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

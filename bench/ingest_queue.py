"""The ingest queue alone: jobs pass through every stage without any work."""

import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from msgspec import Struct

from bench.peers.bare_stores import Bare, bare_sql, bare_zookeeper
from bench.vacuum import vacuum
from penstock import ids
from penstock.clock import system_clock
from penstock.config import Settings
from penstock.errors import PenstockError
from penstock.ingest.models import (
    BatchChange,
    Configuration,
    Identifiers,
    JobChange,
    NewJob,
    Submission,
)
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.transitions import move_batch, move_job
from penstock.plane import Plane
from penstock.schema.ingest import PayloadType
from penstock.server.serve import tune_interpreter
from penstock.states import INGEST_STAGES, BatchState, IngestState

AT_ONCE = 64  # claimed and changed
ADDED_AT_ONCE = 250
ROUNDS = 13  # of timed claims, after one untimed claim
BEAT_SECONDS = 5.0
MEMORY_SECONDS = 0.2
_NEXT = dict(zip(INGEST_STAGES, (*INGEST_STAGES[1:], IngestState.COMPLETED), strict=True))


class Place(Struct, frozen=True):
    """The store of the queue."""

    store: str
    database: str
    queue: str
    folder: str


class Passed(Struct, frozen=True):
    """A batch that passed all stages."""

    store: str
    jobs: int
    made_per_second: float  # jobs per second of the expansion
    per_second: float  # transitions
    cpu_us: float  # per transition, without the server of the store
    memory_start_mb: float
    memory_most_mb: float
    bare: list[Bare]


class Waiting(Struct, frozen=True):
    """The cost to claim and change one of many waiting jobs; medians of rounds."""

    store: str
    waiting: int
    job_us: float
    ratio: float  # cost with the fewest waiting jobs against this cost, round by round


def pass_through(place: Place, jobs: int, seconds: float) -> Passed:
    """Pass one batch through all stages, a thread for each, then measure the bare store."""
    tune_interpreter()
    with _open(place) as plane, _Memory() as memory:
        store = plane.context.store
        began = time.perf_counter()
        _fill(store, jobs)
        made = time.perf_counter() - began
        used, began = time.process_time(), time.perf_counter()
        _pass(store, jobs)
        took, cpu = time.perf_counter() - began, time.process_time() - used
        [batch] = store.claim_batches(BatchState.REPORTING, 1)
        assert batch.jobs == jobs, "every job ended, and the batch knows it"
        names = [job.id for job in store.jobs(batch.id, 1000)]
    if place.store == "zookeeper":
        bare = bare_zookeeper(f"{place.queue}-bare", seconds)
    else:
        bare = bare_sql(place.database, names, seconds)
    transitions = jobs * len(INGEST_STAGES)
    return Passed(
        place.store,
        jobs,
        jobs / made,
        transitions / took,
        1e6 * cpu / transitions,
        memory.start_mb,
        memory.most_mb,
        bare,
    )


def cost_of_waiting(places: Mapping[int, Place]) -> list[Waiting]:
    """Claim and change jobs in turns where few and where many wait."""
    tune_interpreter()
    costs: dict[int, list[float]] = {count: [] for count in places}
    with ExitStack() as stack:
        stores = {}
        for count, place in places.items():
            _fill_apart(place, count)
            stores[count] = stack.enter_context(_open(place)).context.store
            stack.enter_context(_beating(stores[count]))
            _advance(stores[count], IngestState.PENDING)  # the first claim builds its lists
        for _ in range(ROUNDS):
            for count, store in stores.items():
                began = time.perf_counter()
                done = _advance(store, IngestState.PENDING)
                assert done == AT_ONCE, "there is enough to claim"
                costs[count].append(1e6 * (time.perf_counter() - began) / done)
    first = costs[min(costs)]
    return [
        Waiting(
            places[count].store,
            count,
            statistics.median(each),
            statistics.median(few / many for few, many in zip(first, each, strict=True)),
        )
        for count, each in costs.items()
    ]


def _open(place: Place) -> Plane:
    objects, folder = Path(place.folder) / "objects", Path(place.folder) / "work"
    return Plane.open(
        Settings(
            database=place.database,
            queue=place.queue,
            objects=f"file://{objects}",
            ingest_folder=str(folder),
        )
    )


def _fill_apart(place: Place, jobs: int) -> None:
    """Fill the queue from another session, so that this process has nothing cached."""
    with _open(place) as plane, _beating(plane.context.store):
        _fill(plane.context.store, jobs)
    vacuum(place.database)


def _fill(store: IngestStore, jobs: int) -> None:
    """Expand a batch with so many jobs, as the daemon does."""
    submission = Submission(
        profile_name="maps",
        submitter="jo",
        payload_url="https://example.org/batch.checkm",
        type=PayloadType.MANIFEST_OF_FILES,
        uid=ids.new_id(),
    )
    store.submit(submission)
    [batch] = store.claim_batches(BatchState.PENDING, 1)
    for first in range(0, jobs, ADDED_AT_ONCE):
        rows = range(first, min(jobs, first + ADDED_AT_ONCE))
        batch = store.add_jobs(batch, [_job(batch.id, submission.uid, row) for row in rows])
    moved = move_batch(batch, BatchState.PROCESSING, system_clock())
    store.change_batch(BatchChange(batch, moved))


def _job(batch_id: str, uid: str, row: int) -> NewJob:
    configuration = Configuration(
        batch_id=batch_id,
        profile_name="maps",
        submitter="jo",
        payload_url=f"https://example.org/files/{row}.csv",
        payload_type=PayloadType.FILE,
        working_dir=f"/var/lib/penstock/ingest/{batch_id}",
        row=row,
        key=f"{uid}/{row}",
        payload_name=f"{row}.csv",
        digest_algorithm="sha-256",
        digest="0" * 64,
        size=1000,
    )
    return NewJob(configuration, Identifiers(None, (f"local-{row}",)), priority=50)


def _pass(store: IngestStore, jobs: int) -> None:
    failures: list[BaseException] = []

    def run(stage: IngestState) -> None:
        left = jobs
        try:
            while left and not failures:
                done = _advance(store, stage)
                left -= done
                if not done:
                    store.wait(0.1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(stage,)) for stage in INGEST_STAGES]
    with _beating(store):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def _advance(store: IngestStore, stage: IngestState) -> int:
    """Claim the jobs that wait in a stage, and move them on."""
    jobs = store.claim_jobs(stage, AT_ONCE)
    now = system_clock()
    changes = [JobChange(job, move_job(job, _NEXT[stage], now)) for job in jobs]
    for outcome in store.change_jobs(changes) if changes else ():
        if isinstance(outcome, PenstockError):
            raise outcome
    return len(jobs)


@contextmanager
def _beating(store: IngestStore) -> Iterator[None]:
    """Send heartbeats while the block runs."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            store.keep_alive()

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Memory:
    """The memory of this process, at first and at most."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.start_mb = self.most_mb = self._held()

    def __enter__(self) -> "_Memory":
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()

    def _held(self) -> float:
        return float(self._process.memory_info().rss) / 1e6

    def _look(self) -> None:
        while not self._over.wait(MEMORY_SECONDS):
            self.most_mb = max(self.most_mb, self._held())

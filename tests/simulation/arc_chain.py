"""Three arcs with a join, fed by arrivals, under failures; and the checks afterwards."""

import hashlib
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.arcs.arrivals.arrival import Arrival
from penstock.arcs.arrivals.commands import ApplyArrival
from penstock.arcs.commands import ApplyArc
from penstock.arcs.outputs.leftovers import tidy
from penstock.arcs.outputs.state_keys import Sync
from penstock.arcs.overview import count_lots
from penstock.arcs.queries import all_arcs, manifest_rows, output_refs, read_items
from penstock.arcs.spec import Arc, Input, Output, Parts, Retry, Workload
from penstock.arcs.workload.task import Context
from penstock.catalog.entities.runs import lot_of
from penstock.clock import SECOND, Micros, format_time, to_datetime
from penstock.objects import Objects
from penstock.objects.uris import find_object
from penstock.plane import Plane
from penstock.schema.arrivals import OnMissing, TimeFrom
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import Interval, IntervalLot, parse_interval
from penstock.states import ArcState, ManifestState, RunState, WorkState
from tests.simulation.lock_tables import LockTables

NS = "ns"
FIVE_MINUTES = Interval("PT5M")
START = 1_700_006_400_000_000  # 2023-11-15T00:00:00Z
STEP = FIVE_MINUTES.length
GRACE_SECONDS = 60
AT_ONCE = 20  # lots that arrive together
WAITING_MAX = 300  # lots of all arcs that wait before more arrive
FAILURES = "ARC_CHAIN_FAILURES"  # how many runs of a hundred fail, and the seed
MADE_BY = {"clean": "clean", "count": "counts", "join": "both"}
EMPTY_EVERY = 17  # so many lots from one empty lot to the next


@dataclass(frozen=True)
class Fed:
    """A lot of what arrives: its objects by their names."""

    lot: str
    content: dict[str, bytes]

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return iter(self.content.items())


def lots(count: int) -> list[Fed]:
    """Interval lots, one after the other; a few of them are empty."""
    fed = []
    for number in range(count):
        lot = IntervalLot(FIVE_MINUTES, START + number * STEP).id
        content = {f"half={half}/{half}.txt": f"{lot} {half}\n".encode() for half in "ab"}
        fed.append(Fed(lot, {} if number % EMPTY_EVERY == 3 else content))
    return fed


def expected(fed: Fed) -> dict[str, dict[str, bytes]]:
    """What the lot is to be in every dataset that the arcs make."""
    clean = {f"{half}.txt": f"{fed.lot} {half}\n".upper().encode() for half in "ab"}
    clean = clean if fed.content else {}
    size = sum(map(len, clean.values()))
    digest = hashlib.sha256(b"".join(sorted((*fed.content.values(), *clean.values())))).hexdigest()
    return {
        "raw": {name.rpartition("/")[2]: data for name, data in fed},
        "clean": clean,
        "counts": {"count.txt": f"{len(clean)} {size}".encode()},
        "both": {"digest.txt": digest.encode()},
    }


def clean(context: Context) -> None:
    """Each object in capitals, under the name of its half."""
    if not context.uris:
        context.empty()
    for uri in context.uris:
        half = uri.partition("half=")[2][0]
        context.write(f"{half}.txt", context.read(uri).upper())
        _trouble(context)


def count(context: Context) -> None:
    """How many objects and bytes there are."""
    _trouble(context)
    sizes = [len(context.read(uri)) for uri in context.uris]
    context.write("count.txt", f"{len(sizes)} {sum(sizes)}".encode())


def join(context: Context) -> None:
    """A digest of everything in both inputs."""
    context.write("digest.txt", b"not yet")
    _trouble(context)
    data = b"".join(sorted(context.read(uri) for uri in context.uris))
    context.write("digest.txt", hashlib.sha256(data).hexdigest().encode())


def _trouble(context: Context) -> None:
    """Fail or die at random, independently in each attempt."""
    rate, seed = map(int, os.environ[FAILURES].split("/"))
    chance = random.Random(f"{seed} {context.location()}").random() * 100
    if chance < rate:
        context.write("junk.txt", b"left behind")
        raise RuntimeError("a bad day")
    if chance > 100 - rate / 10:
        os.kill(os.getpid(), signal.SIGKILL)


def declare(plane: Plane, lease_seconds: int) -> None:
    """The three arcs."""
    retry = Retry(tries=1000, back_off_seconds=0, lease_seconds=lease_seconds)
    inputs: dict[str, tuple[Input, ...]] = {
        "clean": (Input(dataset="raw"),),
        "count": (Input(dataset="clean"),),
        "join": (Input(dataset="clean"), Input(dataset="raw", subscribe=False)),
    }
    for name, reads in inputs.items():
        arc = Arc(
            name=name,
            namespace=NS,
            inputs=reads,
            outputs=(Output(dataset=MADE_BY[name], interval=FIVE_MINUTES),),
            workload=Workload(function=f"{__name__}:{name}"),
            parts=Parts(pattern="half={half}/", running_max=2) if name == "clean" else None,
            retry=retry,
            running_max=6,
        )
        plane.catalog.submit(ApplyArc("ann", arc)).result()


class Arrivals:
    """Objects that appear in a place, and a clock that says which intervals are over by then."""

    def __init__(self, plane: Plane, location: str, clock: Path, all_fed: list[Fed]) -> None:
        self._store = Objects.open(location)
        self._clock = clock
        self._left = list(all_fed)
        self._fed = 0
        self._tell(START)
        arrival = Arrival(
            dataset="raw",
            namespace=NS,
            location=location,
            interval=FIVE_MINUTES,
            time=TimeFrom.EVENT,
            pattern="{year}{month}{day}/{hour}{minute}/",
            grace_seconds=GRACE_SECONDS,
            start=format_time(START),
            missing=OnMissing.EMPTY,
        )
        plane.catalog.submit(ApplyArrival("ann", arrival)).result()

    def go_on(self, done: int, chance: random.Random) -> None:
        """Let more objects arrive in random order, unless enough wait."""
        if not self._left or len(MADE_BY) * self._fed - done > WAITING_MAX:
            return
        some, self._left = self._left[:AT_ONCE], self._left[AT_ONCE:]
        objects = [(key_of(fed.lot, name), data) for fed in some for name, data in fed]
        chance.shuffle(objects)
        for key, data in objects:
            self._store.put(key, data)
        self._fed += len(some)
        self._tell(START + self._fed * STEP + GRACE_SECONDS * SECOND)

    def _tell(self, now: Micros) -> None:
        """Set the clock that watchers go by; nobody reads half of it."""
        unfinished = self._clock.with_suffix(".new")
        unfinished.write_text(str(now))
        unfinished.replace(self._clock)


def key_of(lot: str, name: str) -> str:
    """Where an object of a lot arrives."""
    found = parse_interval(lot)
    assert found is not None, "all lots of the chain are intervals"
    return f"{to_datetime(found.start):%Y%m%d/%H%M}/{name}"


def done(plane: Plane) -> int:
    """Count the done lots of all arcs."""
    with plane.catalog.read() as tx:
        return sum(counts.complete for counts in count_lots(tx, all_arcs(tx)).values())


def check(plane: Plane, tables: LockTables, all_fed: list[Fed]) -> None:
    """Check that everything is complete, correct and made once, by its lineage."""
    names = tables.names
    work = {(names[row.job_id], row.lot): row for row in tables.work}
    assert work.keys() == {(arc, fed.lot) for arc in MADE_BY for fed in all_fed}
    assert {row.state for row in tables.work} == {WorkState.DONE}
    ended = [
        run
        for run in tables.runs.values()
        if run.state == RunState.COMPLETED and names[run.job_id] in MADE_BY
    ]
    assert Counter((names[run.job_id], lot_of(run)) for run in ended) == Counter(work.keys())
    _check_bytes_and_lineage(plane, tables, all_fed)


def _check_bytes_and_lineage(plane: Plane, tables: LockTables, all_fed: list[Fed]) -> None:
    names, objects = tables.names, plane.objects
    # One version of each lot: nothing was late, and nobody has seen half of one.
    versions = [names[row.dataset_id] for row in tables.versions.values() if "_lot" in row.facets]
    assert versions.count("raw") == len(all_fed)
    made = {
        (names[row.dataset_id], row.lot): row.version_id or ""
        for row in tables.status
        if row.role == DatasetRole.OUTPUT
    }
    read = tables.pins()
    with plane.catalog.read() as tx:
        rows = manifest_rows(tx, list(made.values()))
    for fed in all_fed:
        for dataset, wanted in expected(fed).items():
            row = rows[made[dataset, fed.lot]]
            items = read_items(objects, row)
            found = {item.uri.rpartition("/")[2]: _content(objects, item.uri) for item in items}
            assert found == wanted, (dataset, fed.lot)
            assert len(items) == len(wanted)
            assert row.state == (ManifestState.COMPLETE if wanted else ManifestState.EMPTY)
    datasets = {row.id: row.name for row in tables.datasets.values()}
    sources = {"clean": ("raw",), "counts": ("clean",), "both": ("clean", "raw")}
    for (dataset, lot), version in made.items():
        if dataset == "raw":
            continue
        run_id = tables.versions[version].run_id or ""
        pinned = {name: read.get((run_id, key)) for key, name in datasets.items()}
        wanted_pins = {name: made[name, lot] for name in sources[dataset]}
        assert {name: pin for name, pin in pinned.items() if pin} == wanted_pins
        assert rows[version].attempt.partition("~")[0] == run_id


def _content(objects: Objects, uri: str) -> bytes:
    store, key = find_object(objects, uri)
    return store.get(key)


def orphans(plane: Plane, tables: LockTables) -> Iterator[str]:
    """Return unlisted data of ended attempts; there must be none."""
    listed = _listed(plane, tables)
    for entry in plane.objects.list("data"):
        attempt = entry.key.partition("/attempt=")[2].partition("/")[0].partition("~")[0]
        if entry.key not in listed and tables.runs[attempt].ended_at is None:
            yield entry.key


def clean_up(plane: Plane, tables: LockTables, all_fed: list[Fed]) -> tuple[int, int]:
    """Tidy all lots and sync all keys; return the numbers of wrong keys and removed objects."""
    before = sum(1 for _ in plane.objects.list("data"))
    with plane.catalog.read() as tx:
        arcs = all_arcs(tx)
    wrong = 0
    for row in arcs:
        for fed in all_fed:
            tidy(plane.catalog, plane.objects, output_refs(row.arc), row.job_id, fed.lot)
        synced = Sync(plane.catalog, plane.objects, NS, row.name).run(most=100_000)
        assert synced.lost == 0
        wrong += synced.changed
    left = {entry.key for entry in plane.objects.list("data")}
    assert left == _listed(plane, tables)
    keys = [entry.key for entry in plane.objects.list("arcs")]
    assert len(keys) == len(arcs) * len(all_fed)
    assert {key.rpartition("/")[2] for key in keys} == {f"{ArcState.COMPLETE}.arc"}
    return wrong, before - len(left)


def _listed(plane: Plane, tables: LockTables) -> set[str]:
    """Return the keys of data that the published manifests list."""
    versions = [row.version_id or "" for row in tables.status if row.role == DatasetRole.OUTPUT]
    with plane.catalog.read() as tx:
        rows = manifest_rows(tx, versions)
    items = (item for row in rows.values() for item in read_items(plane.objects, row))
    keys = (item.uri.removeprefix(f"{plane.objects.url}/") for item in items)
    return {key for key in keys if key.startswith("data/")}

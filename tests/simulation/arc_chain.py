"""Three arcs with a join, fed by many lots, under fire; and what must hold of it afterwards.

raw ──clean (by parts)──▶ clean ──count──▶ counts
 └────────────────────────┴─────join──▶ both
"""

import hashlib
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from penstock.arcs.commands import ApplyArc
from penstock.arcs.declaration import Arc, Input, Output, Parts, Retry, Workload
from penstock.arcs.leftovers import tidy
from penstock.arcs.overview import count_lots
from penstock.arcs.reading import all_arcs, manifest_rows, output_refs, read_items
from penstock.arcs.syncing import Sync
from penstock.arcs.tasks import Context, put_manifest
from penstock.catalog.claimed_runs import lot_of
from penstock.catalog.rows import Role
from penstock.locks.commands import RegisterLots
from penstock.lots.ids import Interval, IntervalLot
from penstock.lots.manifests import DatasetRef, Item, Manifest, ManifestNote
from penstock.objects import Objects
from penstock.plane import Plane
from penstock.states import ArcState, ManifestState, RunState, WorkState
from tests.simulation.lock_tables import LockTables

NS = "ns"
FIVE_MINUTES = Interval("PT5M")
START = 1_700_006_400_000_000  # 2023-11-15T00:00:00Z
STEP = 300_000_000
FAILURES = "ARC_CHAIN_FAILURES"  # how many runs of a hundred fail, and the seed
MADE_BY = {"clean": "clean", "count": "counts", "join": "both"}
EMPTY_EVERY = 17  # so many lots from one empty lot to the next


class Fed(NamedTuple):
    """A lot from outside."""

    lot: str
    content: dict[str, bytes]


def lots(count: int) -> list[Fed]:
    """Interval lots, one after the other; a few of them are empty."""
    fed = []
    for number in range(count):
        lot = IntervalLot(FIVE_MINUTES, START + number * STEP).id
        content = {f"half={half}/{lot}.txt": f"{lot} {half}\n".encode() for half in "ab"}
        fed.append(Fed(lot, {} if number % EMPTY_EVERY == 3 else content))
    return fed


def expected(fed: Fed) -> dict[str, dict[str, bytes]]:
    """What the lot is to be in every dataset that the arcs make."""
    clean = {f"{half}.txt": f"{fed.lot} {half}\n".upper().encode() for half in "ab"}
    clean = clean if fed.content else {}
    size = sum(map(len, clean.values()))
    digest = hashlib.sha256(b"".join(sorted((*fed.content.values(), *clean.values())))).hexdigest()
    return {
        "clean": clean,
        "counts": {"count.txt": f"{len(clean)} {size}".encode()},
        "both": {"digest.txt": digest.encode()},
    }


def clean(context: Context) -> None:
    """Each object in capitals, under the name of its half."""
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
    """Fail or die now and then, by a chance that each attempt has anew."""
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


def feed(plane: Plane, all_fed: list[Fed]) -> None:
    """Put the lots into the store and register them, with their manifests."""
    objects, notes = plane.objects, []
    for fed in all_fed:
        for name, data in fed.content.items():
            objects.put(f"incoming/{fed.lot}/{name}", data)
        notes.append(_note(objects, fed))
    names = tuple(fed.lot for fed in all_fed)
    command = RegisterLots(NS, "raw", names, "ann", manifests=tuple(notes))
    assert plane.catalog.submit(command).result() == len(all_fed)


def _note(objects: Objects, fed: Fed) -> ManifestNote:
    where = f"{objects.url}/incoming/{fed.lot}"
    manifest = Manifest(
        state=ManifestState.COMPLETE if fed.content else ManifestState.EMPTY,
        lot=fed.lot,
        dataset=DatasetRef(NS, "raw"),
        uris=tuple(Item(f"{where}/{name}", len(data)) for name, data in fed.content.items()),
        attempt="outside",
    )
    return put_manifest(objects, manifest)[1]


def done(plane: Plane) -> int:
    """How many lots are done, of all arcs together."""
    with plane.catalog.read() as tx:
        return sum(counts.complete for counts in count_lots(tx, all_arcs(tx)).values())


def check(plane: Plane, tables: LockTables, all_fed: list[Fed]) -> None:
    """Everything is complete and right, made once, from what its lineage says."""
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
    made = {
        (names[row.dataset_id], row.lot): row.version_id or ""
        for row in tables.status
        if row.role == Role.OUTPUT
    }
    read = tables.pins()
    with plane.catalog.read() as tx:
        rows = manifest_rows(tx, list(made.values()))
    for fed in all_fed:
        for dataset, wanted in expected(fed).items():
            row = rows[made[dataset, fed.lot]]
            items = read_items(objects, row)
            found = {
                item.uri.rpartition("/")[2]: objects.get(item.uri.removeprefix(f"{objects.url}/"))
                for item in items
            }
            assert found == wanted, (dataset, fed.lot)
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


def orphans(plane: Plane, tables: LockTables) -> Iterator[str]:
    """Data that no published manifest lists, of attempts that have not ended; there is none."""
    listed = _listed(plane, tables)
    for entry in plane.objects.list("data"):
        attempt = entry.key.partition("/attempt=")[2].partition("/")[0].partition("~")[0]
        if entry.key not in listed and tables.runs[attempt].ended_at is None:
            yield entry.key


def clean_up(plane: Plane, tables: LockTables, all_fed: list[Fed]) -> tuple[int, int]:
    """Tidy every lot and sync every key: how many keys were wrong, and how many objects went."""
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
    """The keys of data that the manifests of published versions list."""
    versions = [row.version_id or "" for row in tables.status if row.role == Role.OUTPUT]
    with plane.catalog.read() as tx:
        rows = manifest_rows(tx, versions)
    items = (item for row in rows.values() for item in read_items(plane.objects, row))
    keys = (item.uri.removeprefix(f"{plane.objects.url}/") for item in items)
    return {key for key in keys if key.startswith("data/")}

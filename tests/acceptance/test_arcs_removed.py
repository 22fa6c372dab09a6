"""`removed` lots: all data of a published lot was removed from storage."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import msgspec
import pytest

from penstock.access import audit
from penstock.arcs.outputs.removal import GONE, remove_lot
from penstock.arcs.outputs.state_keys import Sync
from penstock.arcs.spec import Parts
from penstock.errors import Conflict, NotFound
from penstock.locks.commands.admin import ResubmitLots
from penstock.locks.commands.holds import HoldLot
from penstock.locks.explain.why import explain_work
from penstock.locks.gaps.gaps import load_gaps
from penstock.lots.manifests import Manifest
from penstock.objects import Objects
from penstock.schema.gaps import Gap
from penstock.schema.lot_ids import Interval
from penstock.states import ArcState, ManifestState
from tests.acceptance.arc_site import NS, ArcSite
from tests.invariants import broken_invariants

LOT, OTHER = "20230227PT5M287", "20230227PT5M286"


def remove(arcs: ArcSite, dataset: str = "loud", lot: str = LOT) -> None:
    remove_lot(arcs.catalog, arcs.objects, "ann", "too old", NS, dataset, lot)


def gap(arcs: ArcSite, lot: str = LOT) -> Gap | None:
    """Return the gap of a lot of `loud`."""
    with arcs.catalog.read() as tx:
        found = load_gaps(tx, NS, "loud", lot, lot, arcs.plane.clock(), interval=Interval.MINUTES_5)
    return next(iter(found.ranges), None)


def manifest(arcs: ArcSite, key: str) -> Manifest:
    folder = f"datasets/namespace={NS}/name=loud/version=1/lot={LOT}"
    return msgspec.json.decode(arcs.objects.get(f"{folder}/{key}"), type=Manifest)


def test_removal_deletes_data_and_tells_subscribers(arcs: ArcSite) -> None:
    """Jobs that read it keep their outputs; others wait until it is made again."""
    arcs.arc("shout", "raw", "loud")
    arcs.arc("read", "loud", "heard", "join")
    for lot in (LOT, OTHER):
        arcs.feed("raw", lot, {"a.txt": b"hello"})
    with arcs.engine():
        for arc in ("shout", "read"):
            arcs.until_state(arc, LOT, ArcState.COMPLETE)
            arcs.until_state(arc, OTHER, ArcState.COMPLETE)
    [made] = arcs.lot("shout", LOT).manifests
    listed = manifest(arcs, f"state=complete/attempt={made.attempt}/manifest.json")
    remove(arcs)
    assert arcs.data("loud", LOT) == []
    removed = f"state=removed/attempt={made.attempt}/manifest.json"
    assert arcs.manifests("loud", LOT) == [removed]
    after = manifest(arcs, removed)
    assert (after.state, after.uris, after.comment) == ("removed", listed.uris, GONE)
    told = arcs.events()[-1]
    assert (told.kind, told.state, told.dataset.name) == ("removed", "removed", "loud")
    assert (told.lot, told.version) == (LOT, made.version)
    found = gap(arcs)
    assert found is not None
    assert found.cause is not None
    assert (found.kind, gap(arcs, OTHER)) == ("removed", None)
    assert "was removed at" in found.cause.sentence
    assert [(root.lot, root.job and root.job.name) for root in found.cause.roots] == [
        (LOT, "shout")
    ]
    assert arcs.content("read", LOT) == {"joined.txt": b"loud/a.txt: HELLO"}
    assert arcs.data("loud", OTHER) == ["a.txt"]
    assert arcs.state("shout", LOT) is ArcState.COMPLETE
    with arcs.catalog.read() as tx:
        [noted] = [entry for entry in audit.entries(tx, 100) if entry.action == "lot remove"]
    assert (noted.who, noted.detail) == ("ann", "too old")


def test_concurrent_removals_remove_once(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    together = Barrier(2)

    def remove_as(who: str) -> str:
        together.wait()
        with suppress(Conflict):  # or it ends what the other began, which is no error
            remove_lot(arcs.catalog, arcs.objects, who, f"{who} says so", NS, "loud", LOT)
        return who

    with ThreadPoolExecutor(2) as people:
        both = list(people.map(remove_as, ("Ann", "Ben")))
    with arcs.catalog.read() as tx:
        [entry] = [e for e in audit.entries(tx, 100) if e.action == "lot remove"]
    assert entry.who in both
    assert arcs.data("loud", LOT) == []
    [line] = arcs.lot("shout", LOT).manifests
    assert hashlib.sha256(arcs.objects.get(line.key)).hexdigest() == line.digest


def test_removed_lot_is_made_again_by_resubmitting(
    arcs: ArcSite,
) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    remove(arcs)
    arcs.arc("read", "loud", "heard", "join")
    with arcs.catalog.read() as tx:
        said = explain_work(tx, NS, "read", LOT, arcs.plane.clock())
    assert [reason.kind for reason in said.reasons] == ["input_removed"]
    assert "resubmit it for job ns/shout" in said.sentence
    assert Sync(arcs.catalog, arcs.objects, NS, "shout").run().changed == 0
    arcs.do(ResubmitLots("ann", "wanted after all", NS, "shout", (LOT,)))
    found = gap(arcs)
    assert found is not None
    assert found.kind == "waiting"
    with arcs.engine():
        arcs.until_state("read", LOT, ArcState.COMPLETE)
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: "state=complete/manifest.json" in arcs.manifests("loud", LOT))
    assert gap(arcs) is None
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}
    assert [line.state for line in arcs.lot("shout", LOT).manifests] == ["complete", "removed"]
    remove(arcs)
    assert arcs.data("loud", LOT) == []
    assert {line.state for line in arcs.lot("shout", LOT).manifests} == {"removed"}


def test_removed_lot_can_be_made_by_another_job(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    arcs.arc("join", "other", "loud", "join")
    arcs.feed("other", LOT, {"b.txt": b"there"})
    remove(arcs)
    assert broken_invariants(arcs.plane.database, arcs.plane.clock) == []
    assert (arcs.lot("join", LOT).work, arcs.lot("shout", LOT).work) == ("READY", "DONE")


def test_removal_deletes_manifests_of_parts(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=Parts(pattern="day={day}/"))
    arcs.feed("raw", LOT, {f"day={day}/{day}.txt": b"hello" for day in (1, 2)})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: "state=complete/manifest.json" in arcs.manifests("loud", LOT))
    [made] = arcs.lot("shout", LOT).manifests
    remove(arcs)
    root = f"state=removed/attempt={made.attempt}"
    parts = [f"{root}/part=day%3D{day}/manifest.json" for day in (1, 2)]
    assert arcs.manifests("loud", LOT) == [f"{root}/manifest.json", *parts]
    assert arcs.data("loud", LOT) == []
    [kept] = arcs.lot("shout", LOT).manifests
    assert (kept.state, kept.uris, kept.bytes) == (ManifestState.REMOVED, 2, 10)
    assert [len(manifest(arcs, key).uris) for key in parts] == [1, 1]


def test_lot_in_use_is_not_removed(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.order(LOT, "wait")
        arcs.arc("read", "loud", "heard", "join")
        arcs.until_state("read", LOT, ArcState.RUNNING)
        with pytest.raises(Conflict, match="being read by job ns/read"):
            remove(arcs)
        arcs.go()
        arcs.until_state("read", LOT, ArcState.COMPLETE)
    arcs.do(HoldLot("ann", "do not touch", NS, "loud", LOT))
    with pytest.raises(Conflict, match="is HOLD"):
        remove(arcs)
    arcs.do(HoldLot("ann", "go on", NS, "loud", LOT, hold=False))
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}
    remove(arcs)
    assert arcs.data("loud", LOT) == []


def test_removal_refuses_data_of_other_writers(arcs: ArcSite) -> None:
    """Their data must be removed before."""
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    arcs.feed("raw", OTHER, {})
    for lot, reason in ((LOT, "no arc has written"), (OTHER, "empty")):
        with pytest.raises(Conflict, match=reason):
            remove(arcs, "raw", lot)
    with pytest.raises(NotFound):
        remove(arcs, "raw", "never")
    for entry in list(arcs.objects.list(f"incoming/raw/{LOT}")):
        arcs.objects.delete(entry.key)
    remove(arcs, "raw", LOT)
    with arcs.catalog.read() as tx:
        said = explain_work(tx, NS, "shout", LOT, arcs.plane.clock())
    assert "register it again when it exists" in said.sentence
    arcs.feed("raw", LOT, {"b.txt": b"again"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == {"b.txt": b"AGAIN"}


def test_interrupted_removal_can_be_repeated(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=Parts(pattern="day={day}/"))
    arcs.feed("raw", LOT, {f"day={day}/{day}.txt": b"hello" for day in (1, 2)})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: "state=complete/manifest.json" in arcs.manifests("loud", LOT))
    for left in range(5):
        broken = _Broken(arcs.objects, left)
        with pytest.raises(_Cut):
            remove_lot(arcs.catalog, broken, "ann", "too old", NS, "loud", LOT)
    assert arcs.data("loud", LOT) != []
    remove(arcs)
    assert arcs.data("loud", LOT) == []
    assert all(key.startswith("state=removed/") for key in arcs.manifests("loud", LOT))
    assert [event.kind for event in arcs.events()].count("removed") == 1


class _Cut(Exception):
    """The process is cut off."""


class _Broken(Objects):
    """A store that fails after some writes and deletions."""

    def __init__(self, store: Objects, left: int) -> None:
        super().__init__(store.url, store._store, store._folder)
        self._left = left

    def put(self, key: str, data: object, **how: object) -> None:
        self._burn()
        super().put(key, data, **how)  # type: ignore[arg-type]

    def delete(self, key: str) -> None:
        self._burn()
        super().delete(key)

    def _burn(self) -> None:
        if not self._left:
            raise _Cut
        self._left -= 1

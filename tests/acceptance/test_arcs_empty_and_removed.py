"""Manifests without data: `empty` ones, and `removed` ones after cleaning."""

import msgspec

from penstock.arcs.outputs.cleaning import clean_lot
from penstock.arcs.outputs.leftovers import tidy
from penstock.arcs.queries import find_arc, output_refs
from penstock.arcs.spec import Input, Output, Parts
from penstock.locks.commands import RegisterLots
from penstock.lots.manifests import Manifest
from penstock.schema.arcs import EmptyOutput, OnEmpty
from penstock.states import ArcState, ManifestState
from tests.acceptance.arc_site import NS, ONCE, ArcSite

LOT = "20230227PT5M287"


def test_empty_inputs_are_run_or_skipped_as_declared(arcs: ArcSite) -> None:
    arcs.arc("filter", "raw", "few", "be_empty")
    arcs.arc("runs", "few", "ran", "join")
    arcs.arc("skips", "few", "skipped", "join", on_empty=OnEmpty.SKIP)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        for arc in ("filter", "runs", "skips"):
            arcs.until_state(arc, LOT, ArcState.COMPLETE)
    told = {event.dataset.name: (event.kind, event.state) for event in arcs.events()}
    assert told == {
        "raw": ("published", "complete"),
        "few": ("published", "empty"),
        "ran": ("published", "complete"),
        "skipped": ("published", "empty"),
    }
    assert len(arcs.ran()) == 2
    assert arcs.content("runs", LOT) == {"joined.txt": b""}
    assert arcs.content("skips", LOT) == arcs.content("filter", LOT) == {}
    for dataset in ("few", "skipped"):
        assert "state=empty/manifest.json" in arcs.manifests(dataset, LOT)
        assert "state=complete/manifest.json" not in arcs.manifests(dataset, LOT)


def test_workload_that_writes_nothing_fails(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", "forget", retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})

    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)

    assert "the workload wrote nothing for output" in (arcs.lot("shout", LOT).error or "")
    assert [event.dataset.name for event in arcs.events()] == ["raw"]


def test_workload_that_writes_nothing_in_one_part_fails(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", "forget_b", parts=Parts(bytes_max=3), retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"abc", "b.txt": b"def"})

    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)

    assert "part 00001: the workload wrote nothing" in (arcs.lot("shout", LOT).error or "")


def test_output_that_allows_it_is_published_empty(arcs: ArcSite) -> None:
    outputs = (Output(dataset="loud"), Output(dataset="rejected", empty=EmptyOutput.ALLOW))
    arcs.arc("shout", "raw", "loud", outputs=outputs)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})

    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)

    assert "state=complete/manifest.json" in arcs.manifests("loud", LOT)
    assert "state=empty/manifest.json" in arcs.manifests("rejected", LOT)


def test_empty_joined_inputs_do_not_count(arcs: ArcSite) -> None:
    """Subscribed inputs decide, at any position."""
    inputs = (Input(dataset="names", subscribe=False), Input(dataset="raw"))
    arcs.arc("both", inputs, "joined", "join", on_empty=OnEmpty.SKIP)
    arcs.feed("names", "1", {})
    arcs.feed("raw", "1", {"a.txt": b"hello"})
    arcs.feed("names", "2", {"n.txt": b"ann"})
    arcs.feed("raw", "2", {})
    with arcs.engine():
        arcs.until_state("both", "1", ArcState.COMPLETE)
        arcs.until_state("both", "2", ArcState.COMPLETE)
    assert arcs.ran() == [("1", "")]
    assert arcs.content("both", "1") == {"joined.txt": b"raw/a.txt: hello"}
    assert [line.state for line in arcs.lot("both", "2").manifests] == ["empty"]


def test_empty_lots_by_parts_have_no_part(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=Parts(bytes_max=10))
    arcs.arc("filter", "raw", "few", "be_empty", parts=Parts(bytes_max=3))
    arcs.feed("raw", "1", {})
    arcs.feed("raw", "2", {"a.txt": b"abc", "b.txt": b"def"})
    with arcs.engine():
        for arc in ("shout", "filter"):
            arcs.until_state(arc, "1", ArcState.COMPLETE)
            arcs.until_state(arc, "2", ArcState.COMPLETE)
    assert arcs.ran().count(("1", "")) == 2  # as a whole, each: it is theirs to say what is empty
    assert [line.state for line in arcs.lot("shout", "1").manifests] == ["empty"]
    assert [line.state for line in arcs.lot("filter", "2").manifests] == ["empty"]
    assert arcs.content("shout", "2") == {"a.txt": b"ABC", "b.txt": b"DEF"}


def test_lot_without_uris_is_neither_split_nor_empty(arcs: ArcSite) -> None:
    """A lot without a manifest may have data; only `empty` lots are skipped."""
    arcs.arc("some", "raw", "some", "write_some", parts=Parts(bytes_max=10), on_empty=OnEmpty.SKIP)
    arcs.arc("each", "raw", "each", "write_some", parts=Parts(bytes_max=10))
    arcs.do(RegisterLots(NS, "raw", ("registered",), "ann"))
    arcs.feed("raw", "empty", {})
    with arcs.engine():
        for lot in ("registered", "empty"):
            arcs.until_state("some", lot, ArcState.COMPLETE)
            arcs.until_state("each", lot, ArcState.COMPLETE)
    assert arcs.content("some", "registered") == {"some.txt": b"some"}
    assert arcs.content("some", "empty") == {}
    assert arcs.content("each", "registered") == arcs.content("each", "empty")
    assert sorted(arcs.ran()) == [("empty", ""), ("registered", ""), ("registered", "")]


def test_empty_is_followed_by_data_of_a_later_version(arcs: ArcSite) -> None:
    """The well-known key shows the last published version."""
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: "state=empty/manifest.json" in arcs.manifests("loud", LOT))
        arcs.feed("raw", LOT, {"late.txt": b"hello"})
        arcs.until(lambda: arcs.content("shout", LOT))
        arcs.until(lambda: "state=complete/manifest.json" in arcs.manifests("loud", LOT))
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == {"late.txt": b"HELLO"}
    assert "state=empty/manifest.json" not in arcs.manifests("loud", LOT)


def test_removed_manifest_lists_removed_data(arcs: ArcSite) -> None:
    """Each attempt has its own manifest, so retries do not collide."""
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "fail")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    [before] = arcs.lot("shout", LOT).failed_attempts
    assert before.state is ManifestState.PARTIAL
    listed = _read(arcs, before.keys[0])
    assert clean_lot(arcs.catalog, arcs.objects, "ann", "no room", NS, "shout", LOT) == 1
    [after] = arcs.lot("shout", LOT).failed_attempts
    assert (after.run, after.state) == (before.run, ManifestState.REMOVED)
    assert arcs.manifests("loud", LOT) == [f"state=removed/attempt={before.run}/manifest.json"]
    removed = _read(arcs, after.keys[0])
    assert removed.state is ManifestState.REMOVED
    assert removed.uris == listed.uris
    assert [item.uri.rpartition("/")[2] for item in removed.uris] == ["junk.txt"]
    assert arcs.data("loud", LOT) == []
    assert clean_lot(arcs.catalog, arcs.objects, "ann", "again", NS, "shout", LOT) == 0


def test_data_of_a_late_worker_is_tidied(arcs: ArcSite) -> None:
    """Written after the attempt was cleaned, beside the published lot."""
    arcs.arc("shout", "raw", "loud")
    arcs.order(LOT, "fail")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: arcs.data("loud", LOT) == ["a.txt"])
    [failed] = arcs.lot("shout", LOT).failed_attempts
    [made] = arcs.lot("shout", LOT).manifests
    folder = f"data/namespace={NS}/name=loud/version=1/lot={LOT}"
    for attempt in (failed.run, made.attempt, f"{made.attempt}~2"):
        arcs.objects.put(f"{folder}/attempt={attempt}/late.txt", b"too late")
    with arcs.catalog.read() as tx:
        row = find_arc(tx, NS, "shout")
    tidy(arcs.catalog, arcs.objects, output_refs(row.arc), row.job_id, LOT)
    assert arcs.data("loud", LOT) == ["a.txt"]
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}


def _read(arcs: ArcSite, key: str) -> Manifest:
    return msgspec.json.decode(arcs.objects.get(key), type=Manifest)

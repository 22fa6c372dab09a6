"""`penstock check`: each invariant is broken on purpose, and reported."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.config import Settings
from penstock.lots.manifests import DatasetRef, Manifest, decode, encode, manifest_key
from penstock.provenance.checks import ALL, Grounds
from penstock.provenance.checks.lots import manifest_items
from penstock.provenance.checks.run import check
from penstock.states import ManifestState
from tests.contract.arrival_site import NOON, Site
from tests.contract.broken.scene import LOTS, NS, Scene, open_scene
from tests.databases import migrated_database
from tests.invariants import open_grounds

# The invariant, what breaks it, and words that have to be in what is said of it.
BROKEN = (
    ("audit-chain", ("break_audit_entry",), "was changed"),
    ("audit-chain", ("break_audit_first",), "an entry before it was deleted"),
    ("audit-chain", ("break_audit_newest",), "the newest entries were deleted"),
    ("audit-chain", ("break_audit_head",), "the head of the chain is missing"),
    ("current-versions", ("break_current_versions",), f"dataset {NS}/raw"),
    ("newest-versions", ("break_newest_versions",), f"dataset {NS}/tick"),
    ("pinned-versions", ("break_pinned_versions",), "version 11111111-"),
    ("run-counts", ("break_run_counts",), f"job {NS}/make"),
    ("version-counts", ("break_version_counts",), f"dataset {NS}/raw"),
    ("latest-runs", ("break_latest_runs",), f"job {NS}/make"),
    ("job-versions", ("break_job_versions",), "does not exist or is newer"),
    ("job-versions", ("break_job_versions_gone",), f"job {NS}/make"),
    ("tallies", ("break_tallies",), f"namespace {NS}"),
    ("tallies", ("break_tallies_of_nothing",), "namespace nowhere"),
    ("event-counts", ("break_event_counts",), "but there are"),
    ("event-counts", ("break_event_counts_of_nothing",), "in the hour 0"),
    ("search", ("break_search",), f"DATASET {NS}/raw"),
    ("edges", ("break_edges",), f"job {NS}/make does not show"),
    ("edges", ("break_edges_of_going_runs",), f"job {NS}/shout does not show"),
    ("current-edges", ("break_current_edges",), "as OUTPUT, and its edge is not current"),
    ("current-edges", ("break_current_edges_of_nothing",), "as OUTPUT without a source"),
    ("one-writer", ("break_one_writer", "break_one_writer_too"), f"lot {LOTS[0]} of {NS}/tick"),
    ("live-claims", ("break_live_claims",), "which is FAILED"),
    ("ended-claims", ("break_ended_claims",), "is RUNNING, but its claim has ended"),
    ("locks", ("break_locks",), "has no live claim"),
    ("claimed-inputs", ("break_claimed_inputs",), f"job {NS}/shout"),
    ("ready-lots", ("break_ready_lots",), "version 11111111-"),
    ("holds", ("break_holds",), "is READY, held for"),
    ("consumed-lots", ("break_consumed_lots",), "version 11111111-"),
    ("work", ("break_work",), "is READY, and should be DONE"),
    ("work", ("break_work_order",), "wrong position in the order of work"),
    ("work", ("break_work_wires",), "is not listed under its datasets"),
    ("met-lots", ("break_met_lots",), f"of {NS}/tick, which is READY"),
    ("manifests", ("break_manifests",), "is READY with partial"),
    ("manifests", ("break_manifests_of_arcs",), "is READY with no manifest"),
    ("attempts", ("break_attempts",), "attempt 11111111-"),
    ("outbox", ("break_outbox",), "subscriber early is at event 1000000"),
    ("arcs", ("break_arcs",), f"arc {NS}/shout"),
    ("parts", ("break_parts",), "is complete, but its run is RUNNING"),
    ("parts", ("break_parts_of_done_lots",), "part day=1"),
    ("leftovers", ("break_leftovers",), "its run is COMPLETED"),
    ("backfills", ("break_backfill_counts",), "counts 5 lots as done, but there are 0"),
    ("backfills", ("break_backfill_range",), "has surveyed to 0"),
    ("backfills", ("break_ended_backfills",), "is done, and 1 of its lots are going"),
    ("replays", ("break_replay_counts",), "counts 0 steps as failed, but there are 1"),
    ("replays", ("break_ended_replays",), "is done, but not all of its steps have ended"),
    ("replays", ("break_open_replays",), "is running, and is not stepped"),
    ("replay-order", ("break_replay_order",), "waits for 0 steps; 1 before it are not done"),
    ("replay-order", ("break_replay_failures",), "1 before it are not done, 1 have failed"),
    ("turn-keepers", ("break_turn_keepers",), "does not keep the turns of its steps"),
    ("turn-keepers", ("break_turn_keepers_of_nothing",), "is not there, and still keeps turns"),
    ("turn-keepers", ("break_turn_keepers_paused",), "keeps them as one that is paused"),
    ("turns", ("break_turns",), "is pending, but its work is not reserved"),
    ("turns", ("break_turns_in_vain",), "which has no such step to begin"),
    ("turns", ("break_turns_of_nobody",), "waits for no replay"),
    ("operations", ("break_operations",), "is of job 11111111-"),
    ("operations", ("break_operations_of_replays",), "is of job 11111111-"),
    ("ingest-queue", ("break_ingest_queue",), "jid-1 belongs to a batch that does not exist"),
    ("ingest-queue", ("break_ingest_locks",), "bid-locked is locked"),
    ("ingest-queue", ("break_ingest_stuck",), "bid-stuck is processing"),
    ("ingest-queue", ("break_ingest_tallies",), "bid-counted has a wrong count of jobs in failed"),
    ("ingest-queue", ("break_ingest_totals",), "the total of jobs in failed is wrong"),
    ("batch-lots", ("break_batch_lots",), "lot bid-gone, which does not exist"),
    ("deposits", ("break_deposits",), "version 2 of ark:/99999/fk4gap"),
    ("object-writers", ("break_stored_objects", "break_object_writers"), "jid-w may still write"),
)
# What only reading every byte can tell, and what files can break, has tests of its own.
OTHERS = {
    "manifest-files", "manifest-items", "failed-attempts", "stored-objects", "state-keys",
    "arrival-keys", "orphans",
}  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("scene")
    with (
        migrated_database(request.param, request, folder) as url,
        open_scene(url, folder) as opened,
    ):
        yield opened


def test_everything_holds_before_anything_is_broken(scene: Scene) -> None:
    verdicts = scene.verdicts(deep=True)
    assert [name for name, verdict in verdicts.items() if not verdict.holds] == []
    assert list(verdicts) == [invariant.name for invariant in ALL]


def test_each_invariant_has_a_test() -> None:
    assert {name for name, _, _ in BROKEN} | OTHERS == {invariant.name for invariant in ALL}


@pytest.mark.parametrize(("name", "breaking", "words"), BROKEN)
def test_violation_is_reported(
    scene: Scene, name: str, breaking: tuple[str, ...], words: str
) -> None:
    verdict = scene.verdicts(*breaking)[name]
    assert not verdict.holds
    assert verdict.broken == len(verdict.first) > 0
    assert any(words in found for found in verdict.first), verdict.first


def test_reported_batch_without_a_lot_is_a_violation(tmp_path: Path) -> None:
    # Batches are asked of the queue itself, which sees only what is committed.
    url = f"sqlite:///{tmp_path / 'other.db'}"
    with open_scene(url, tmp_path) as other:
        with other.database.write() as tx:
            tx.execute("break_reported_batches")
        verdict = other.verdicts()["batch-lots"]
    assert verdict.first == ("batch bid-told is reported, but is no lot",)


def test_missing_object_is_a_violation(scene: Scene) -> None:
    [quick] = scene.verdicts("break_stored_objects")["stored-objects"].first
    assert quick.startswith("object ark:/99999/fk4w cannot be read: there is no object")
    [found] = scene.verdicts("break_stored_objects", deep=True)["stored-objects"].first
    assert found.startswith("object ark:/99999/fk4w: ")
    assert found.endswith("inventory.json is missing")


def published(scene: Scene, dataset: str) -> str:
    """Return the key of a manifest that readers get."""
    folder = f"datasets/namespace={NS}/name={dataset}/version=1/lot={LOTS[0]}/state=complete"
    keys = [entry.key for entry in scene.objects.list(folder)]
    return next(key for key in keys if "/attempt=" in key and "/part=" not in key)


def changed(scene: Scene, key: str, **changes: object) -> bytes:
    """Return a changed manifest, and restore the old one afterwards."""
    before = scene.objects.get(key)
    manifest: Manifest = decode(before, key)
    scene.objects.put(key, encode(msgspec.structs.replace(manifest, **changes)))
    return before


def test_lost_manifest_is_a_violation(scene: Scene) -> None:
    key = published(scene, "raw")
    content = scene.objects.get(key)
    scene.objects.delete(key)
    try:
        [found] = scene.verdicts()["manifest-files"].first
    finally:
        scene.objects.put(key, content)
    assert found.startswith(f"lot {LOTS[0]}, version ")
    assert found.endswith(f"its manifest {key} is not in the store")


def test_deep_check_finds_overwritten_manifest(scene: Scene) -> None:
    key = published(scene, "raw")
    before = changed(scene, key, comment="by hand")
    try:
        assert scene.verdicts()["manifest-files"].holds
        [found] = scene.verdicts(deep=True)["manifest-files"].first
    finally:
        scene.objects.put(key, before)
    assert f"{key} has sha256 " in found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"short", "it has 5 bytes"),
        (b"20261115PT1H00 X", "its digest is"),
        (None, "does not exist"),
    ],
)
def test_deep_check_finds_changed_data(scene: Scene, content: bytes | None, words: str) -> None:
    folder = f"data/namespace={NS}/name=raw/version=1/lot={LOTS[0]}"
    key = next(entry.key for entry in scene.objects.list(folder))
    before = scene.objects.get(key)
    if content is None:
        scene.objects.delete(key)
    else:
        scene.objects.put(key, content)
    try:
        assert scene.verdicts()["manifest-items"].holds
        [found] = scene.verdicts(deep=True)["manifest-items"].first
    finally:
        scene.objects.put(key, before)
    assert key in found
    assert words in found


def test_published_data_of_a_failed_attempt_is_a_violation(scene: Scene) -> None:
    key = published(scene, "raw")
    manifest = decode(scene.objects.get(key), key)
    item = manifest.uris[0]
    strange = msgspec.structs.replace(
        item, uri=item.uri.replace(manifest.attempt, "22222222-2222-8222-a222-222222222222")
    )
    before = changed(scene, key, uris=(strange, *manifest.uris[1:]))
    try:
        [found] = scene.verdicts(deep=True)["failed-attempts"].first
    finally:
        scene.objects.put(key, before)
    assert "is of attempt 22222222-" in found
    assert f"its manifest of {manifest.attempt}" in found


def test_stale_and_missing_keys_are_violations(scene: Scene) -> None:
    well_known = f"{published(scene, 'raw').partition('/attempt=')[0]}/manifest.json"
    stale = f"arcs/namespace={NS}/project=default/version=1/arc=make/lot={LOTS[0]}/running.arc"
    content = scene.objects.get(well_known)
    scene.objects.delete(well_known)
    scene.objects.put(stale, b"{}")
    try:
        assert scene.verdicts()["state-keys"].holds
        faults = scene.verdicts(deep=True)["state-keys"].first
    finally:
        scene.objects.put(well_known, content)
        scene.objects.delete(stale)
    lot = f"lot {LOTS[0]} of arc {NS}/make"
    assert faults == (
        f"{lot}: the key {stale} is stale",
        f"{lot}: {well_known} is not the manifest that was published last",
    )


def test_arrival_manifest_off_its_key_is_a_violation(database_url: str, tmp_path: Path) -> None:
    site = Site(database_url, tmp_path)
    try:
        site.declare()
        site.put("a", NOON)
        site.later(6)
        (lot,) = site.lots()
        key = manifest_key(DatasetRef("ns", "raw"), lot, ManifestState.COMPLETE)
        site.objects.delete(key)
        settings = Settings(database=database_url, objects=site.objects.url)

        with open_grounds(settings, deep=True) as found:
            verdicts = {verdict.name: verdict for verdict in check(found)}
    finally:
        site.close()

    (fault,) = verdicts["arrival-keys"].first
    assert fault.endswith(f"is not at its well-known key, such as {key}")


def test_unlisted_data_is_a_violation(scene: Scene) -> None:
    folder = f"data/namespace={NS}/name=raw/version=1/lot={LOTS[0]}"
    listed = next(entry.key for entry in scene.objects.list(folder))
    orphan = f"{listed.rpartition('/')[0]}/orphan"
    scene.objects.put(orphan, b"left")
    try:
        assert scene.verdicts()["orphans"].holds
        [fault] = scene.verdicts(deep=True)["orphans"].first
    finally:
        scene.objects.delete(orphan)
    assert fault.startswith(f"{orphan}, which attempt ")


def test_stopped_check_ends(scene: Scene) -> None:
    plane = scene.plane
    stopped = Grounds(scene.database, lambda: plane.objects, plane.context, plane.clock, deep=True)
    verdicts = check(stopped)
    assert next(verdicts).holds
    stopped.stop.set()
    assert list(verdicts) == []
    assert list(manifest_items(stopped)) == []

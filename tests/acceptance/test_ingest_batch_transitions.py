"""Every move of a batch, under its own name, on every backend, with ZooKeeper's tree after it."""

import json

import pytest

from penstock.errors import Conflict, NotFound
from penstock.ingest.models import BatchChange
from penstock.ingest.transitions import move_batch, resume_job
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_scene import (
    BID,
    JIDS,
    NOW,
    NOW_TEXT,
    BatchTree,
    JobTree,
    Scene,
)

NEW = BatchTree("pending", jobs=0, has_states=False)
FAILED = JobTree("failed", passed=("pending", "failed"))
COMPLETED = JobTree(
    "completed",
    "notify",
    passed=(
        "pending", "estimating", "provisioning", "downloading", "processing", "recording", "notify",
        "completed",
    ),
)  # fmt: skip
MIXED = (IngestState.COMPLETED, IngestState.FAILED, IngestState.COMPLETED)
MIXED_TREES = (COMPLETED, FAILED, COMPLETED)
REPORT = {
    "last_modified": NOW_TEXT,
    "failed_jobs": [JIDS[1]],
    "successful_jobs": [JIDS[0], JIDS[2]],
}
REPORT_TEXT = json.dumps(REPORT)


def test_batch_is_created_and_queued(scene: Scene) -> None:
    batch = scene.submit()
    assert batch.id == BID
    scene.expect(NEW)


def test_batch_acquire_pending(scene: Scene) -> None:
    scene.submit()
    batch = scene.claim(BatchState.PENDING)
    scene.expect(NEW._replace(lock=batch.locked_by))
    assert scene.store.claim_batches(BatchState.PENDING, 5) == []


def test_batch_pending_to_held(scene: Scene) -> None:
    scene.submit()
    scene.move(scene.claim(BatchState.PENDING), BatchState.HELD, message="maps are held")
    scene.expect(NEW._replace(status="held", message="maps are held"))


def test_batch_pending_to_processing(scene: Scene) -> None:
    scene.expand()
    scene.expect(BatchTree("processing"), JobTree(), JobTree(), JobTree())


def test_batch_pending_to_failed(scene: Scene) -> None:
    scene.submit()
    batch = scene.claim(BatchState.PENDING)
    scene.move(batch, BatchState.FAILED, message="line 3: no such column")
    scene.expect(NEW._replace(status="failed", message="line 3: no such column"))


def test_batch_failed_to_pending(scene: Scene) -> None:
    scene.submit()
    failed = scene.move(scene.claim(BatchState.PENDING), BatchState.FAILED, message="server away")
    scene.move(failed, BatchState.PENDING, by_hand=True)
    scene.expect(NEW)
    assert scene.claim(BatchState.PENDING).id == BID


def test_batch_held_to_pending(scene: Scene) -> None:
    scene.submit()
    held = scene.move(scene.claim(BatchState.PENDING), BatchState.HELD)
    scene.move(held, BatchState.PENDING, by_hand=True)
    scene.expect(NEW)
    assert scene.claim(BatchState.PENDING).id == BID


def test_batch_processing_to_reporting(scene: Scene) -> None:
    scene.finish_all(*MIXED[:2])
    scene.expect(BatchTree("processing"), *MIXED_TREES[:2])
    assert scene.store.claim_batches(BatchState.REPORTING, 5) == []
    scene.go(scene.acquire(IngestState.PENDING), IngestState.FAILED)
    scene.expect(BatchTree("reporting"), COMPLETED, FAILED, FAILED)


def test_batch_acquire_reporting(scene: Scene) -> None:
    scene.finish_all(*MIXED)
    batch = scene.claim(BatchState.REPORTING)
    scene.expect(BatchTree("reporting", lock=batch.locked_by), *MIXED_TREES)


def test_batch_reporting_to_completed(scene: Scene) -> None:
    scene.finish_all(*[IngestState.COMPLETED] * 3)
    batch = scene.claim(BatchState.REPORTING)
    report = REPORT | {"failed_jobs": [], "successful_jobs": list(JIDS)}
    scene.move(batch, BatchState.COMPLETED, report=json.dumps(report))
    scene.expect(BatchTree("completed", report=report), *[COMPLETED] * 3)


def reported_failure(scene: Scene) -> None:
    scene.finish_all(*MIXED)
    scene.move(scene.claim(BatchState.REPORTING), BatchState.FAILED, report=REPORT_TEXT)


def test_batch_reporting_to_failed(scene: Scene) -> None:
    reported_failure(scene)
    scene.expect(BatchTree("failed", report=REPORT), *MIXED_TREES)


def test_batch_failed_to_update_reporting(scene: Scene) -> None:
    reported_failure(scene)
    scene.move(scene.store.batch(BID), BatchState.UPDATE_REPORTING, by_hand=True)
    scene.expect(BatchTree("update-reporting", report=REPORT), *MIXED_TREES)


def update_asked_for(scene: Scene) -> None:
    reported_failure(scene)
    scene.move(scene.store.batch(BID), BatchState.UPDATE_REPORTING, by_hand=True)


def test_batch_acquire_update_reporting(scene: Scene) -> None:
    update_asked_for(scene)
    batch = scene.claim(BatchState.UPDATE_REPORTING)
    tree = BatchTree("update-reporting", report=REPORT, lock=batch.locked_by)
    scene.expect(tree, *MIXED_TREES)


def test_batch_update_reporting_to_completed(scene: Scene) -> None:
    update_asked_for(scene)
    report = REPORT | {"failed_jobs": [], "successful_jobs": list(JIDS)}
    batch = scene.claim(BatchState.UPDATE_REPORTING)
    scene.move(batch, BatchState.COMPLETED, report=json.dumps(report))
    scene.expect(BatchTree("completed", report=report), *MIXED_TREES)


def test_batch_update_reporting_to_failed(scene: Scene) -> None:
    update_asked_for(scene)
    scene.move(scene.claim(BatchState.UPDATE_REPORTING), BatchState.FAILED, report=REPORT_TEXT)
    scene.expect(BatchTree("failed", report=REPORT), *MIXED_TREES)


def deleted(scene: Scene, jobs: int, *, by_hand: bool = True) -> None:
    """A batch is deleted after its jobs, and nothing is left of either, nor of its key."""
    batch = scene.store.batch(BID)
    move_batch(batch, BatchState.DELETED, NOW, by_hand=by_hand)
    if jobs:
        with pytest.raises(Conflict, match=f"batch {BID} still has {jobs} jobs"):
            scene.store.change_batch(BatchChange(batch, None, by_hand=True))
    for job in scene.store.jobs(BID, 10):
        scene.delete(job)
    assert scene.store.change_batch(BatchChange(batch, None, by_hand=True)) is None
    with pytest.raises(NotFound):
        scene.store.batch(BID)
    scene.expect(None)


def test_batch_failed_to_deleted(scene: Scene) -> None:
    reported_failure(scene)
    deleted(scene, 3)


def test_batch_held_to_deleted(scene: Scene) -> None:
    scene.submit()
    scene.move(scene.claim(BatchState.PENDING), BatchState.HELD)
    deleted(scene, 0)


def test_batch_completed_is_cleaned_up(scene: Scene) -> None:
    scene.finish_all(*[IngestState.COMPLETED] * 3)
    scene.move(scene.claim(BatchState.REPORTING), BatchState.COMPLETED, report=REPORT_TEXT)
    deleted(scene, 3, by_hand=False)


def test_batch_of_a_resumed_job_reports_again_only_when_asked(scene: Scene) -> None:
    scene.failed_in(IngestState.NOTIFY)
    for _ in range(2):
        scene.go(scene.acquire(IngestState.PENDING), IngestState.FAILED)
    scene.move(scene.claim(BatchState.REPORTING), BatchState.FAILED, report=REPORT_TEXT)
    job = scene.store.job(JIDS[0])
    scene.change(job, resume_job(job, NOW), by_hand=True)
    tree = BatchTree("failed", report=REPORT)
    passed = (*COMPLETED.passed[:-1], "failed", "notify")
    resumed = JobTree("notify", "recording", retry_count=1, passed=passed)
    scene.expect(tree, resumed, FAILED, FAILED)
    scene.go(scene.acquire(IngestState.NOTIFY), IngestState.COMPLETED)
    ended = JobTree("completed", "notify", retry_count=1, passed=(*passed, "completed"))
    scene.expect(tree, ended, FAILED, FAILED)
    assert scene.store.claim_batches(BatchState.REPORTING, 5) == []

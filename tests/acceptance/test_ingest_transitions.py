"""Every move of an ingest job, under its own name, on every backend.

On ZooKeeper the whole tree is compared after each: the old entry gone, the new one there, the
batch's side right, no lock left.
"""

import itertools

import pytest
from msgspec.structs import replace

from penstock.errors import Conflict, NotFound
from penstock.ingest.models import Batch, Identifiers, IngestJob, JobChange
from penstock.ingest.transitions import move_batch, move_job, resume_job, resume_stage
from penstock.states import BATCH, INGEST_JOB, BatchState, IngestState
from tests.acceptance.ingest_scene import JIDS, NOW, BatchTree, JobTree, Scene

PROCESSING = BatchTree("processing")
WAY = ("pending", "estimating", "provisioning", "downloading", "processing", "recording", "notify")


def way_to(stage: str) -> tuple[str, ...]:
    """The states that a job has passed, up to this one."""
    return WAY[: WAY.index(stage) + 1]


def before(stage: str) -> str | None:
    """The last stage that succeeded when a job comes to this one; pending does not count."""
    index = WAY.index(stage)
    return WAY[index - 1] if index > 1 else None


@pytest.mark.parametrize("stage", [IngestState(name) for name in WAY])
def test_job_acquire(scene: Scene, stage: IngestState) -> None:
    scene.first_in(stage)
    job = scene.acquire(stage)
    assert job.id == JIDS[0]
    assert job.locked_by.startswith("daemon/")
    scene.expect(
        PROCESSING, JobTree(stage, before(stage), passed=way_to(stage), lock=job.locked_by)
    )


def test_job_pending_to_failed(scene: Scene) -> None:
    scene.expand()
    job = scene.go(scene.acquire(IngestState.PENDING), IngestState.FAILED, message="bad digest")
    scene.expect(PROCESSING, JobTree("failed", message="bad digest", passed=("pending", "failed")))
    with pytest.raises(
        Conflict, match="cannot be resumed; correct the payload and submit it again"
    ):
        resume_job(job, NOW)


def test_job_pending_to_held(scene: Scene) -> None:
    scene.expand()
    scene.go(scene.acquire(IngestState.PENDING), IngestState.HELD)
    scene.expect(PROCESSING, JobTree("held", passed=("pending", "held")))


def test_job_pending_to_estimating(scene: Scene) -> None:
    scene.expand()
    scene.go(scene.acquire(IngestState.PENDING), IngestState.ESTIMATING)
    scene.expect(PROCESSING, JobTree("estimating", passed=("pending", "estimating")))


def test_job_held_to_pending(scene: Scene) -> None:
    scene.expand()
    held = scene.go(scene.acquire(IngestState.PENDING), IngestState.HELD)
    scene.go(held, IngestState.PENDING, by_hand=True)
    scene.expect(PROCESSING, JobTree("pending", passed=("pending", "held", "pending")))


def test_job_estimating_to_provisioning(scene: Scene) -> None:
    scene.first_in(IngestState.ESTIMATING)
    job = scene.acquire(IngestState.ESTIMATING)
    scene.go(job, IngestState.PROVISIONING, priority=10, space_needed=1_000_000_000)
    scene.expect(
        PROCESSING,
        JobTree(
            "provisioning",
            "estimating",
            passed=way_to("provisioning"),
            priority=10,
            space_needed=1_000_000_000,
        ),
    )


def test_job_provisioning_stays_without_space(scene: Scene) -> None:
    scene.first_in(IngestState.PROVISIONING)
    job = scene.acquire(IngestState.PROVISIONING)
    scene.store.release([job])
    scene.expect(PROCESSING, JobTree("provisioning", "estimating", passed=way_to("provisioning")))
    assert scene.acquire(IngestState.PROVISIONING).id == job.id


def test_job_provisioning_to_downloading(scene: Scene) -> None:
    scene.first_in(IngestState.PROVISIONING)
    scene.go(scene.acquire(IngestState.PROVISIONING), IngestState.DOWNLOADING)
    scene.expect(PROCESSING, JobTree("downloading", "provisioning", passed=way_to("downloading")))


def test_job_downloading_to_processing(scene: Scene) -> None:
    scene.first_in(IngestState.DOWNLOADING)
    job = scene.acquire(IngestState.DOWNLOADING)
    scene.go(job, IngestState.PROCESSING, priority=10, space_needed=2_000)
    passed = way_to("processing")
    scene.expect(
        PROCESSING,
        JobTree("processing", "downloading", passed=passed, priority=10, space_needed=2_000),
    )


def failed(scene: Scene, stage: IngestState, last: str) -> None:
    scene.first_in(stage)
    scene.go(scene.acquire(stage), IngestState.FAILED, message="broken")
    scene.expect(
        PROCESSING, JobTree("failed", last, message="broken", passed=(*way_to(stage), "failed"))
    )


def test_job_downloading_to_failed(scene: Scene) -> None:
    failed(scene, IngestState.DOWNLOADING, "provisioning")


def test_job_processing_to_failed(scene: Scene) -> None:
    failed(scene, IngestState.PROCESSING, "downloading")


def test_job_recording_to_failed(scene: Scene) -> None:
    failed(scene, IngestState.RECORDING, "processing")


def test_job_notify_to_failed(scene: Scene) -> None:
    failed(scene, IngestState.NOTIFY, "recording")


def test_job_processing_writes_its_ark_down_at_once(scene: Scene) -> None:
    scene.first_in(IngestState.PROCESSING)
    job = scene.acquire(IngestState.PROCESSING)
    minted = replace(job, identifiers=Identifiers("555", job.identifiers.local_id))
    [noted] = scene.store.change_jobs([JobChange(job, minted, keep_lock=True)])
    assert isinstance(noted, IngestJob)
    tree = JobTree("processing", "downloading", passed=way_to("processing"), primary="555")
    scene.expect(PROCESSING, tree._replace(lock=job.locked_by))
    scene.go(noted, IngestState.RECORDING)
    scene.expect(
        PROCESSING,
        tree._replace(
            status="recording", last_successful_status="processing", passed=way_to("recording")
        ),
    )


def test_job_processing_to_recording(scene: Scene) -> None:
    scene.first_in(IngestState.PROCESSING)
    scene.go(scene.acquire(IngestState.PROCESSING), IngestState.RECORDING)
    scene.expect(PROCESSING, JobTree("recording", "processing", passed=way_to("recording")))


def test_job_recording_to_notify(scene: Scene) -> None:
    scene.first_in(IngestState.RECORDING)
    scene.go(scene.acquire(IngestState.RECORDING), IngestState.NOTIFY)
    scene.expect(PROCESSING, JobTree("notify", "recording", passed=way_to("notify")))


def test_job_notify_to_completed(scene: Scene) -> None:
    scene.first_in(IngestState.NOTIFY)
    scene.go(scene.acquire(IngestState.NOTIFY), IngestState.COMPLETED)
    scene.expect(PROCESSING, JobTree("completed", "notify", passed=(*WAY, "completed")))


def resumed(scene: Scene, failed_in: IngestState, to: IngestState, last: str) -> None:
    """A failed job goes on after the last stage that succeeded; each time counts."""
    job = scene.failed_in(failed_in)
    assert resume_stage(job) is to
    scene.change(job, resume_job(job, NOW), by_hand=True)
    passed = (*way_to(failed_in), "failed", to)
    scene.expect(PROCESSING, JobTree(to, last, retry_count=1, passed=passed))
    again = scene.go(scene.acquire(to), IngestState.FAILED, by_hand=True)
    job = scene.change(again, resume_job(again, NOW), by_hand=True)
    assert (job.status, job.retry_count) == (to, 2)


def test_job_failed_to_pending(scene: Scene) -> None:
    scene.expand()
    pending = scene.acquire(IngestState.PENDING)
    job = scene.go(pending, IngestState.FAILED, message="server away", can_begin_again=True)
    tree = JobTree("failed", message="server away", passed=("pending", "failed"))
    scene.expect(PROCESSING, tree._replace(can_begin_again=True))
    scene.change(job, resume_job(job, NOW), by_hand=True)
    scene.expect(PROCESSING, JobTree(retry_count=1, passed=("pending", "failed", "pending")))


def test_job_failed_to_provisioning(scene: Scene) -> None:
    resumed(scene, IngestState.PROVISIONING, IngestState.PROVISIONING, "estimating")


def test_job_failed_to_downloading(scene: Scene) -> None:
    resumed(scene, IngestState.DOWNLOADING, IngestState.DOWNLOADING, "provisioning")


def test_job_failed_to_processing(scene: Scene) -> None:
    resumed(scene, IngestState.PROCESSING, IngestState.PROCESSING, "downloading")


def test_job_failed_to_recording(scene: Scene) -> None:
    resumed(scene, IngestState.RECORDING, IngestState.RECORDING, "processing")


def test_job_failed_to_notify(scene: Scene) -> None:
    resumed(scene, IngestState.NOTIFY, IngestState.NOTIFY, "recording")


def deleted(scene: Scene, job: IngestJob, *, by_hand: bool = True) -> None:
    """Nothing of a deleted job is left, in three places."""
    move_job(job, IngestState.DELETED, NOW, by_hand=by_hand)
    scene.delete(job)
    with pytest.raises(NotFound):
        scene.store.job(job.id)
    scene.expect(PROCESSING, None)


def test_job_completed_to_deleted(scene: Scene) -> None:
    scene.first_in(IngestState.NOTIFY)
    done = scene.go(scene.acquire(IngestState.NOTIFY), IngestState.COMPLETED)
    deleted(scene, done, by_hand=False)


def test_job_failed_to_deleted(scene: Scene) -> None:
    deleted(scene, scene.failed_in(IngestState.DOWNLOADING))


def test_job_held_to_deleted(scene: Scene) -> None:
    scene.expand()
    deleted(scene, scene.go(scene.acquire(IngestState.PENDING), IngestState.HELD))


def test_a_locked_job_is_forced_to_failed(scene: Scene) -> None:
    scene.first_in(IngestState.ESTIMATING)
    job = scene.acquire(IngestState.ESTIMATING)
    seen = scene.store.job(job.id)
    forced = scene.go(seen, IngestState.FAILED, by_hand=True, message="stopped by ann")
    after = move_job(job, IngestState.PROVISIONING, NOW)
    assert isinstance(scene.refuse(forced, JobChange(job, after)), Conflict)
    passed = ("pending", "estimating", "failed")
    scene.expect(PROCESSING, JobTree("failed", message="stopped by ann", passed=passed))


A_JOB = IngestJob(
    id=JIDS[0],
    configuration=None,  # type: ignore[arg-type]
    identifiers=Identifiers(),
    status=IngestState.PENDING,
    last_modified=NOW,
    priority=5,
)
A_BATCH = Batch(
    id="bid0000000001",
    submission=None,  # type: ignore[arg-type]
    status=BatchState.PENDING,
    last_modified=NOW,
)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_job_makes_no_other_moves(by_hand: bool) -> None:
    for old, new in itertools.product(IngestState, IngestState):
        if not INGEST_JOB.allows(old, new, by_hand=by_hand):
            with pytest.raises(Conflict, match=f"job {A_JOB.id} is {old} and cannot become {new}"):
                move_job(replace(A_JOB, status=old), new, NOW, by_hand=by_hand)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_batch_makes_no_other_moves(by_hand: bool) -> None:
    for old, new in itertools.product(BatchState, BatchState):
        if not BATCH.allows(old, new, by_hand=by_hand):
            with pytest.raises(Conflict, match=f"{A_BATCH.id} is {old} and cannot become {new}"):
                move_batch(replace(A_BATCH, status=old), new, NOW, by_hand=by_hand)

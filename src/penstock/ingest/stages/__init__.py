"""The stages of ingest, one file each, and the only list of them.

Each file describes what its stage needs, does, and fails for. A stage of jobs gets a job that
its worker has locked, and returns the job in its next state; to run a stage twice is harmless. It
raises a PenstockError if the job fails, and Postponed if the job keeps its state. A stage of
batches changes the batch itself. A round has no item: it looks at all of its work.

To add a stage of jobs: write its file, add it to STAGES, and add its state to `states.IngestState`,
the table there and INGEST_STAGES. The page has its list in ui/src/kit/states.ts, and the check of
the column needs a migration.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from penstock.ingest.context import IngestContext
from penstock.ingest.models import Batch, IngestJob
from penstock.ingest.notifications import letters
from penstock.ingest.stages import (
    batch_pending,
    clean_up,
    downloading,
    estimating,
    lots,
    notify,
    pending,
    processing,
    provisioning,
    recording,
    reporting,
)
from penstock.states import BatchState, IngestState

JobWork = Callable[[IngestContext, IngestJob], IngestJob]
BatchWork = Callable[[IngestContext, Batch], None]
Round = Callable[[IngestContext], object]


class JobStage(Struct, frozen=True):
    """A stage of ingest jobs; one daemon works on several jobs at once."""

    state: IngestState
    work: JobWork

    @property
    def name(self) -> str:
        """The name of the state."""
        return str(self.state)


class BatchStage(Struct, frozen=True):
    """A stage of batches. Each daemon works on one batch; `is_concurrent` allows several daemons.

    `is_concurrent` is for work that may hang on another server: one batch must not delay all.
    """

    name: str
    state: BatchState
    work: BatchWork
    is_concurrent: bool = False


class RoundStage(Struct, frozen=True):
    """Work that is looked at as a whole.

    With `every_seconds` it runs that often. Without, it runs at every poll, and pauses after a
    round that returned something: that has to wait.
    """

    name: str
    run: Round
    every_seconds: float | None = None
    state: IngestState | None = None


Stage = JobStage | BatchStage | RoundStage

STAGES: Final[tuple[Stage, ...]] = (
    BatchStage("batch-pending", BatchState.PENDING, batch_pending.work, is_concurrent=True),
    BatchStage("batch-reporting", BatchState.REPORTING, reporting.work),
    BatchStage("batch-update-reporting", BatchState.UPDATE_REPORTING, reporting.work),
    JobStage(IngestState.PENDING, pending.work),
    JobStage(IngestState.ESTIMATING, estimating.work),
    RoundStage(
        "provisioning",
        lambda context: provisioning.go_round(context)[1],
        state=IngestState.PROVISIONING,
    ),
    JobStage(IngestState.DOWNLOADING, downloading.work),
    JobStage(IngestState.PROCESSING, processing.work),
    JobStage(IngestState.RECORDING, recording.work),
    JobStage(IngestState.NOTIFY, notify.work),
    RoundStage("lots", lots.go_round, every_seconds=5.0),
    RoundStage("clean-up", clean_up.go_round, every_seconds=60.0),
)
STAGE_NAMES: Final = tuple(stage.name for stage in STAGES)
# Batches send mail: a worker that runs a stage of batches retries the mail as well.
LETTERS: Final = RoundStage("letters", letters.go_round, every_seconds=5.0)

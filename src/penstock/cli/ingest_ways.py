"""What can be done with a batch as it stands, and what stops it, in words."""

from penstock.cli.ingest_progress import HELD, Look, look_at
from penstock.client import Client
from penstock.client.ingest_documents import Batch

_LOOKED_AT_MAX = 1_000


def ways_on(client: Client, batch: Batch) -> list[str]:
    """What to do next; nothing, if there is nothing to be done."""
    look = look_at(batch, 0)
    is_at_rest = not look.under_way
    match batch.status:
        case "completed":
            return []
        case "failed" if is_at_rest:
            return _after_failure(client, batch, look)
        case "held" | "processing" if is_at_rest and (batch.status == HELD or look.of(HELD).jobs):
            return [f"to let it go on: penstock ingest release {batch.id}"]
    return [f"follow it with: penstock ingest watch {batch.id}"]


def _after_failure(client: Client, batch: Batch, look: Look) -> list[str]:
    if not batch.jobs:
        again = f"once its payload can be read: penstock ingest resume {batch.id}"
        return [again, "or correct the payload and submit it again"]
    if not look.of("failed").jobs:
        return [f"to have it reported as it stands: penstock ingest update-report {batch.id}"]
    ways = [f"what failed, and why: penstock ingest report {batch.id}"]
    failed = client.batch_jobs(batch.id, status="failed", limit=_LOOKED_AT_MAX).jobs
    if len(failed) == _LOOKED_AT_MAX or any(job.resumes_at for job in failed):
        return [*ways, f"to let it go on: penstock ingest resume {batch.id}"]
    return [*ways, "no job of it can be resumed: correct the payload and submit it again"]


def stops(client: Client, batch: Batch) -> list[str]:
    """Who holds the queue, or the batch's collection."""
    queue = client.queue()
    told = []
    if held := queue.held:
        way = "it goes on with: penstock ingest release queue"
        told.append(f"the queue is held by {held.who}: {held.why}; {way}")
    for each in queue.collections_held:
        if each.name == batch.collection:
            way = f"it goes on with: penstock ingest release collection {each.name}"
            told.append(f"collection {each.name} is held by {each.who}: {each.why}; {way}")
    return told

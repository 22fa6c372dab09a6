"""Pending: check that the payload is what the depositor declared.

Needs: the payload's URL. Does: holds the job if its collection is on hold; fetches and reads an
object manifest. Waits while the disk is full. Fails if the manifest cannot be fetched after some
tries; the job can then begin again. A corrupt manifest, or one with a wrong digest, is a permanent
failure that needs a new submission.
"""

from penstock.ingest.context import (
    PAYLOAD_SCHEME,
    IngestContext,
    PermanentFailure,
    Postponed,
    postpone_if_away,
)
from penstock.ingest.intake.fetching import FetchStopped, NoSpace
from penstock.ingest.intake.payload import CorruptManifest, list_files, upload_reader
from penstock.ingest.intake.places import Places, check_url
from penstock.ingest.models import IngestHoldKind, IngestJob
from penstock.ingest.transitions import move_job
from penstock.states import IngestState


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Check the payload."""
    collection = context.collections.of_job(job)
    for hold in postpone_if_away(context.store.holds):
        if hold.kind is IngestHoldKind.COLLECTION and hold.name == collection.name:
            message = f"collection {collection.name} is held by {hold.who}: {hold.why}"
            return move_job(job, IngestState.HELD, context.runtime.clock(), message=message)
    configuration = job.configuration
    try:
        files = list_files(context, job, collection)
    except (FetchStopped, NoSpace) as reason:
        raise Postponed(str(reason)) from None
    except CorruptManifest as error:
        raise PermanentFailure(str(error)) from None
    for wanted in files:
        is_upload = wanted.url.startswith(f"{PAYLOAD_SCHEME}:")
        if not (
            is_upload
            and wanted.url == configuration.payload_url
            and upload_reader(context, configuration)
        ):
            check_url(wanted.url, Places(collection.places))
    return move_job(job, IngestState.ESTIMATING, context.runtime.clock())

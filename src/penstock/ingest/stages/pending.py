"""Pending: is the payload what its depositor says it is?

Needs: the payload's URL. Does: stops the job if its collection is held; fetches and reads an
object manifest. Waits while our own disk is full. Fails when the manifest cannot be had after some
tries, and can begin again then; and for good on a manifest that is corrupt or does not match its
digest: a new submission is needed.
"""

from penstock.ingest.context import (
    PAYLOAD_SCHEME,
    IngestContext,
    PermanentFailure,
    Postponed,
    postpone_if_away,
)
from penstock.ingest.intake.fetching import NoSpace, Stopped
from penstock.ingest.intake.payload import Corrupt, own_upload, wanted_files
from penstock.ingest.intake.places import Places, check_url
from penstock.ingest.models import HoldKind, IngestJob
from penstock.ingest.transitions import move_job
from penstock.states import IngestState


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Look at the payload."""
    collection = context.collections.of_job(job)
    for hold in postpone_if_away(context.store.holds):
        if hold.kind is HoldKind.COLLECTION and hold.name == collection.name:
            message = f"collection {collection.name} is held by {hold.who}: {hold.why}"
            return move_job(job, IngestState.HELD, context.runtime.clock(), message=message)
    told = job.configuration
    try:
        files = wanted_files(context, job, collection)
    except (Stopped, NoSpace) as reason:
        raise Postponed(str(reason)) from None
    except Corrupt as error:
        raise PermanentFailure(str(error)) from None
    for wanted in files:
        is_upload = wanted.url.startswith(f"{PAYLOAD_SCHEME}:")
        if not (is_upload and wanted.url == told.payload_url and own_upload(context, told)):
            check_url(wanted.url, Places(collection.places))
    return move_job(job, IngestState.ESTIMATING, context.runtime.clock())

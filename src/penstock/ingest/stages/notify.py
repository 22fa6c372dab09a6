"""Notify: call the depositor's system, then complete the job.

Needs: the collection's callback, if it has one. Does: posts the signed result of the deposit and
removes the working folder. Fails if the callback does not accept it after some tries. The write
that completes the last job also moves its batch on.
"""

import msgspec

from penstock.ingest.archive.register import StoredRow, stored_versions
from penstock.ingest.context import IngestContext, Postponed, postpone_if_away
from penstock.ingest.models import IngestJob
from penstock.ingest.notifications.callbacks import call_back
from penstock.ingest.transitions import move_job
from penstock.states import IngestState


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Call the callback and remove the working folder."""
    collection = context.collections.of_job(job)
    if collection.callback is not None:
        secret = collection.callback_secret
        call_back(
            context.outbound.client(collection),
            collection.callback,
            None if secret is None else context.outbound.secrets.reveal(secret),
            _body(context, job),
            key=job.configuration.key,
            now=context.runtime.clock(),
            sleep=lambda seconds: _pause(context, seconds),
        )
    context.storage.remove_job_folder(job)
    return move_job(job, IngestState.COMPLETED, context.runtime.clock())


def _pause(context: IngestContext, seconds: float) -> None:
    """Wait for the next try; leave it to another worker if this one is stopping."""
    context.runtime.pause(seconds)
    if context.runtime.is_stopping():
        raise Postponed("the worker is stopping")


def _stored(context: IngestContext, key: str) -> list[StoredRow]:
    with context.catalog.read() as tx:
        return stored_versions(tx, [key])


def _body(context: IngestContext, job: IngestJob) -> bytes:
    configuration = job.configuration
    stored = postpone_if_away(lambda: _stored(context, configuration.key))
    return msgspec.json.encode(
        {
            "batch": configuration.batch_id,
            "ingestJob": job.id,
            "collection": configuration.profile_name,
            "submitter": configuration.submitter,
            "ark": job.identifiers.primary,
            "localIds": job.identifiers.local_id,
            "payload": configuration.payload_name,
            "status": "completed",
            "objectVersion": stored[0].version if stored else None,
            "location": stored[0].location if stored else None,
            "digest": stored[0].digest if stored else None,
            "runId": stored[0].run_id if stored else None,
        }
    )

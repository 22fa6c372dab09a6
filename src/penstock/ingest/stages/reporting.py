"""Batch reporting and batch update reporting: report the result of a batch to its depositor.

Needs: a batch without jobs under way, or an administrator's request. Does: lists the completed and
the open jobs, stores the list as the batch's report, and mails it. An update lists the jobs that
completed since the report before, and the open ones. The batch is completed if every job is, else
failed. The completed deposits are published as a lot. A mail that cannot be sent is retried later.
A failed mail or an unpublished lot is noted in the batch's message and does not stop the report.
"""

from collections.abc import Iterator, Sequence

import msgspec

from penstock.errors import Busy, NotFound, PenstockError, Unavailable
from penstock.ingest.archive.register import stored_versions
from penstock.ingest.context import IngestContext, Postponed
from penstock.ingest.lots import publish_batch
from penstock.ingest.models import Batch, BatchChange, IngestJob, to_json
from penstock.ingest.notifications.letters import send
from penstock.ingest.notifications.mail import MailLetter
from penstock.ingest.notifications.reports import (
    BatchReport,
    ReportLine,
    make_report,
    report_letter,
    report_of,
)
from penstock.ingest.telemetry import batch_moved
from penstock.ingest.transitions import move_batch
from penstock.states import BatchState, IngestState

_PAGE = 1_000


def work(context: IngestContext, batch: Batch) -> None:
    """Report and end the batch."""
    jobs = list(lines_of(context, batch))
    lines = [line for _, line in jobs]
    report = make_report(batch, lines, report_of(batch), context.runtime.clock())
    letter = report_letter(batch, report, lines, ())
    done = [key for key, line in jobs if line.status == IngestState.COMPLETED]
    troubles = [_publish(context, batch, report, done), _mail(context, batch, letter)]
    trouble = "; ".join(filter(None, troubles))
    to = BatchState.FAILED if report.still_open else BatchState.COMPLETED
    report_json = to_json(msgspec.structs.replace(report, text=letter.text))
    moved = move_batch(batch, to, context.runtime.clock(), message=trouble, report=report_json)
    changed = context.store.change_batch(BatchChange(batch, moved))
    if changed is not None:
        batch_moved(context.collections, changed)


def _publish(context: IngestContext, batch: Batch, report: BatchReport, done: Sequence[str]) -> str:
    """Publish the batch as a lot; return the reason if that is refused, for the report's reader."""
    try:
        publish_batch(context, batch, report, done)
    except (Busy, Unavailable) as error:
        raise Postponed(str(error)) from None
    except PenstockError as error:
        return f"it is not published as a lot: {error}"
    return ""


def _mail(context: IngestContext, batch: Batch, letter: MailLetter) -> str:
    """Mail the report; return the reason if it is not sent."""
    try:
        mail = context.collections.get(batch.collection).mail
    except NotFound as error:
        return f"it is not mailed: {error}"
    return send(context, batch.id, msgspec.structs.replace(letter, to=mail))


def lines_of(context: IngestContext, batch: Batch) -> Iterator[tuple[str, ReportLine]]:
    """Yield the key and the report line of each deposit."""
    after: str | None = None
    while jobs := context.store.jobs(batch.id, _PAGE, after):
        with context.catalog.read() as tx:
            done = [job for job in jobs if job.status is IngestState.COMPLETED]
            stored = {
                row.key: row for row in stored_versions(tx, [j.configuration.key for j in done])
            }
        for job in jobs:
            key = job.configuration.key
            row = stored.get(key)
            size = row.bytes if row else job.space_needed
            yield key, _line(job, row.version if row else None, size)
        after = jobs[-1].id


def _line(job: IngestJob, version: int | None, size: int) -> ReportLine:
    return ReportLine(
        id=job.id,
        name=job.configuration.erc_what or job.configuration.payload_name,
        status=job.status,
        primary=job.identifiers.primary,
        local_ids=job.identifiers.local_id,
        message=job.message or None,
        last_successful_status=job.last_successful_status,
        can_begin_again=job.can_begin_again,
        size=size,
        object_version=version,
    )

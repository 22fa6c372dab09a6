"""Reports of batches, and the letters with them; pure functions.

The report is stored as JSON with its batch; the next report is compared with it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.json import Decoder

from penstock.clock import Micros, to_datetime
from penstock.ingest.intake.places import redact_url
from penstock.ingest.models import Batch
from penstock.ingest.notifications.mail import MailLetter, is_unprintable

LISTED_MAX = 1_000
NAME_LENGTH_MAX = 200
MESSAGE_LENGTH_MAX = 1_000
REASONS_LISTED_MAX = 25
LOCAL_IDS_LISTED_MAX = 10


class ReportLine(Struct, frozen=True):
    """A report's line on one ingest job; `name` is its title or the name of its payload."""

    id: str
    name: str
    status: str
    primary: str | None = None
    local_ids: tuple[str, ...] = ()
    message: str | None = None
    last_successful_status: str | None = None
    can_begin_again: bool = False
    size: int = 0
    object_version: int | None = None


class BatchReport(Struct, frozen=True, kw_only=True):
    """The state of a batch's jobs. A job is in `successful_jobs` or in `still_open`, never in both.

    `failed_jobs` are the failed ones of `still_open`. `newly_successful` and `gone` (deleted) are
    relative to the report before, so a first report has none. `text` is the text of its letter.
    """

    number: int
    kind: Literal["status", "update"]
    batch_id: str
    collection: str
    submitter: str
    payload_url: str
    submitted_at: Micros
    last_modified: Micros
    successful_jobs: tuple[str, ...]
    failed_jobs: tuple[str, ...]
    newly_successful: tuple[str, ...]
    still_open: tuple[str, ...]
    gone: tuple[str, ...]
    text: str = ""


_decode_report = Decoder(BatchReport).decode


def report_of(batch: Batch) -> BatchReport | None:
    """Return the latest report of a batch."""
    return None if batch.report is None else _decode_report(batch.report)


def make_report(
    batch: Batch, lines: Sequence[ReportLine], before: BatchReport | None, now: Micros
) -> BatchReport:
    """Build the report of a batch from the lines of its jobs and the report before."""
    statuses = {line.id: line.status for line in sorted(lines, key=lambda line: line.id)}
    successful = tuple(job for job, status in statuses.items() if status == "completed")
    earlier_jobs = () if before is None else (*before.successful_jobs, *before.still_open)
    reported = frozenset(successful if before is None else before.successful_jobs)
    return BatchReport(
        number=1 if before is None else before.number + 1,
        kind="status" if before is None else "update",
        batch_id=batch.id,
        collection=batch.collection,
        submitter=batch.submission.submitter,
        payload_url=batch.submission.payload_url,
        submitted_at=batch.submission.submitted_at,
        last_modified=now,
        successful_jobs=successful,
        failed_jobs=tuple(job for job, status in statuses.items() if status == "failed"),
        newly_successful=tuple(job for job in successful if job not in reported),
        still_open=tuple(job for job, status in statuses.items() if status != "completed"),
        gone=tuple(sorted(job for job in earlier_jobs if job not in statuses)),
    )


def confirmation_letter(batch: Batch, jobs: int, to: Sequence[str]) -> MailLetter:
    """Build the letter that confirms that a batch was queued."""
    text = [
        f"Your batch was queued with {_count(jobs, 'job')}.",
        "",
        *_heading(batch),
        "",
        "You get a report when every job has ended.",
        f"To watch it until then: penstock ingest watch {batch.id}",
    ]
    return _letter(batch, to, "queued", f"queued, {_count(jobs, 'job')}", text)


def failure_letter(batch: Batch, to: Sequence[str]) -> MailLetter:
    """Build the letter about a batch whose payload could not be read."""
    partial = (
        f"Your batch failed after {_count(batch.jobs, 'job')} of it had been made, which go on."
    )
    nothing = "Your batch failed before any job was made of it, and nothing of it was stored."
    text = [
        partial if batch.jobs else nothing,
        "",
        *_heading(batch),
        "",
        *_reasons(batch.message),
        "",
        "Correct the payload and submit it again. Where it only could not be reached, or is put",
        f"right at its place, an administrator resumes it: penstock ingest resume {batch.id}",
    ]
    what = "failed, not all of it was read" if batch.jobs else "failed, nothing was stored"
    return _letter(batch, to, "failed", what, text)


def report_letter(
    batch: Batch, report: BatchReport, lines: Sequence[ReportLine], to: Sequence[str]
) -> MailLetter:
    """Build the letter with a report; `lines` describe the jobs in the report."""
    lines_by_id = {line.id: line for line in lines}
    text = [
        *_heading(batch),
        f"{'Reported:':12}{_moment(report.last_modified)}",
        "",
        f"{_summary(report)}.",
        *(_status_lists if report.kind == "status" else _update_lists)(report, lines_by_id),
    ]
    subject = _summary(report) if report.kind == "status" else f"update, {_update_summary(report)}"
    return _letter(batch, to, f"report-{report.number}", subject, text)


def _status_lists(report: BatchReport, lines_by_id: Mapping[str, ReportLine]) -> list[str]:
    see = f"penstock ingest jobs {report.batch_id}"
    done = f"{see} --status completed"
    failed = frozenset(report.failed_jobs)
    under_way = [job for job in report.still_open if job not in failed]
    return [
        *_listed("Failed", report.failed_jobs, lines_by_id, _open_line, f"{see} --status failed"),
        *_listed("Still under way", under_way, lines_by_id, _open_line, see),
        *_listed("Completed", report.successful_jobs, lines_by_id, _completed_line, done),
    ]


def _update_lists(report: BatchReport, lines_by_id: Mapping[str, ReportLine]) -> list[str]:
    see = f"penstock ingest jobs {report.batch_id}"
    done = f"{see} --status completed"
    since = "since the report before"
    return [
        f"Since the report before: {_update_summary(report)}.",
        *_listed(f"Completed {since}", report.newly_successful, lines_by_id, _completed_line, done),
        *_listed("Still open", report.still_open, lines_by_id, _open_line, see),
        *_listed(f"Deleted {since}", report.gone, {}, _open_line, ""),
    ]


def _summary(report: BatchReport) -> str:
    under_way = len(report.still_open) - len(report.failed_jobs)
    counts = f"{len(report.successful_jobs):,} completed, {len(report.failed_jobs):,} failed"
    return f"{counts}, {under_way:,} under way" if under_way else counts


def _update_summary(report: BatchReport) -> str:
    counts = f"{len(report.newly_successful):,} more completed, {len(report.still_open):,} open"
    return f"{counts}, {len(report.gone):,} deleted" if report.gone else counts


def _listed(
    title: str,
    jobs: Sequence[str],
    lines_by_id: Mapping[str, ReportLine],
    describe: Callable[[ReportLine], list[str]],
    see: str,
) -> list[str]:
    """Format a list with a title, cut at LISTED_MAX; an empty list has no title.

    `see` is the command that shows the rest.
    """
    if not jobs:
        return []
    text = ["", f"{title} ({len(jobs):,})"]
    for job in jobs[:LISTED_MAX]:
        text += describe(lines_by_id[job]) if job in lines_by_id else [f"  {job}"]
    if len(jobs) > LISTED_MAX:
        rest = len(jobs) - LISTED_MAX
        text.append(f"  and {rest:,} more" + (f"; see: {see}" if see else ""))
    return text


def _completed_line(line: ReportLine) -> list[str]:
    version = None if line.object_version is None else f"version {line.object_version}"
    facts = [_primary(line), version, f"{line.size:,} bytes", _local_ids(line)]
    return [f"  {line.id}  {_name(line)}", f"      {', '.join(fact for fact in facts if fact)}"]


def _open_line(line: ReportLine) -> list[str]:
    ids = ", ".join(fact for fact in (_primary(line), _local_ids(line)) if fact)
    text = [f"  {line.id}  {_name(line)}" + (f"  ({ids})" if ids else "")]
    if line.status != "failed":
        return [*text, f"      is {_plain(line.status, NAME_LENGTH_MAX)}"]
    message = _plain(line.message or "", MESSAGE_LENGTH_MAX) or "no reason was given"
    return [*text, f"      {message}", f"      {_way_on(line)}"]


def _way_on(line: ReportLine) -> str:
    if line.last_successful_status is not None:
        stage = _plain(line.last_successful_status, NAME_LENGTH_MAX)
        return f"{stage} had succeeded: an administrator can resume it after that stage"
    if line.can_begin_again:
        return "its payload is not at fault: an administrator can resume it from the beginning"
    return "it cannot be resumed: correct the payload and submit it again"


def _primary(line: ReportLine) -> str:
    return _plain(line.primary or "", NAME_LENGTH_MAX)


def _local_ids(line: ReportLine) -> str:
    if not line.local_ids:
        return ""
    listed = [_plain(each, NAME_LENGTH_MAX) for each in line.local_ids[:LOCAL_IDS_LISTED_MAX]]
    rest = len(line.local_ids) - len(listed)
    more = f" and {rest:,} more" if rest else ""
    return f"{'local id' if len(line.local_ids) == 1 else 'local ids'} {', '.join(listed)}{more}"


def _name(line: ReportLine) -> str:
    return _plain(line.name, NAME_LENGTH_MAX) or "(no name)"


def _heading(batch: Batch) -> list[str]:
    submission = batch.submission
    payload = submission.payload_name or redact_url(submission.payload_url)
    facts = {
        "Batch:": batch.id,
        "Collection:": _plain(batch.collection, NAME_LENGTH_MAX),
        "Submitter:": _plain(submission.submitter, NAME_LENGTH_MAX),
        "Payload:": _plain(payload, MESSAGE_LENGTH_MAX),
        "Submitted:": _moment(submission.submitted_at),
    }
    return [f"{name:12}{value}" for name, value in facts.items()]


def _letter(
    batch: Batch, to: Sequence[str], what: str, subject: str, text: list[str]
) -> MailLetter:
    collection = _plain(batch.collection, NAME_LENGTH_MAX)
    return MailLetter(
        to=tuple(to),
        subject=f"[Penstock] batch {batch.id} of {collection}: {subject}",
        text="\n".join([*text, ""]),
        # The uid distinguishes installations, which all count their batches from 1.
        message_id=f"{batch.id}.{batch.submission.uid}.{what}",
    )


def _reasons(message: str) -> list[str]:
    """List the reasons why a payload was refused, one on each line."""
    reasons = [_plain(reason, MESSAGE_LENGTH_MAX) for reason in message.splitlines()]
    if len(reasons) > 1:
        return [f"  {reason}" for reason in reasons[:REASONS_LISTED_MAX]]
    return [*reasons, "No reason was given."][:1]


def _plain(text: str, length_max: int) -> str:
    """Put text of a depositor on one line, so that it cannot forge a line of the letter."""
    line = "".join(" " if is_unprintable(each) else each for each in text).strip()
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"


def _moment(at: Micros) -> str:
    return f"{to_datetime(at):%Y-%m-%d %H:%M:%S} UTC"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

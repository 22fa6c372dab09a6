"""What reports say about a batch, and the letters that carry them, word for word."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.clock import SECOND, parse_time
from penstock.ingest.models import Batch, Submission
from penstock.ingest.notifications.mail import MailLetter, compose_message
from penstock.ingest.notifications.reports import (
    BatchReport,
    ReportLine,
    confirmation_letter,
    failure_letter,
    make_report,
    report_letter,
)
from penstock.schema.ingest import PayloadType
from penstock.states import BatchState

NOW = parse_time("2026-11-15T10:00:00Z")
TO = ("anna@example.org",)
BATCH = Batch(
    id="bid0000000001",
    submission=Submission(
        profile_name="maps",
        submitter="anna",
        payload_url="https://user:pw@example.org/in/maps.checkm?token=s3cret",
        type=PayloadType.MANIFEST_OF_FILES,
        uid="0197f0d0-0000-7000-8000-000000000001",
        submitted_at=NOW - 90 * SECOND,
    ),
    status=BatchState.REPORTING,
    last_modified=NOW,
)


def job(number: int, status: str = "completed") -> ReportLine:
    return ReportLine(f"jid{number:010}", f"map {number}.tif", status)


def ids(*numbers: int) -> tuple[str, ...]:
    return tuple(f"jid{number:010}" for number in numbers)


GOOD = ReportLine(
    id="jid0000000001",
    name="Karte von Köln.tif",
    status="completed",
    primary="ark:/99999/fk4abc",
    local_ids=("loc001", "loc001b"),
    last_successful_status="notify",
    size=1_234_567,
    object_version=2,
)
RESUMABLE = ReportLine(
    id="jid0000000002",
    name="地図.tif",
    status="failed",
    local_ids=("loc002",),
    message="https://example.org/2.tif was answered 404;\n check the URL",
    last_successful_status="provisioning",
)
LOST = ReportLine("jid0000000003", "map 3.tif", "failed", message="line 4: no digest")


def test_the_first_report_has_every_job_in_one_list() -> None:
    lines = [job(3, "failed"), job(1), job(2), job(4, "downloading")]
    report = make_report(BATCH, lines, None, NOW)
    assert report == BatchReport(
        number=1,
        kind="status",
        batch_id="bid0000000001",
        collection="maps",
        submitter="anna",
        payload_url=BATCH.submission.payload_url,
        submitted_at=NOW - 90 * SECOND,
        last_modified=NOW,
        successful_jobs=ids(1, 2),
        failed_jobs=ids(3),
        newly_successful=(),
        still_open=ids(3, 4),
        gone=(),
    )


def test_an_update_lists_new_successes_and_open_jobs() -> None:
    first = make_report(BATCH, [job(1), *(job(n, "failed") for n in (2, 3, 4, 5))], None, NOW)
    later = [job(1), job(2), job(3, "failed"), job(4, "processing")]
    update = make_report(BATCH, later, first, NOW + SECOND)
    assert (update.kind, update.number, update.last_modified) == ("update", 2, NOW + SECOND)
    assert update.successful_jobs == ids(1, 2)
    assert update.newly_successful == ids(2)
    assert update.failed_jobs == ids(3)
    assert update.still_open == ids(3, 4)
    assert update.gone == ids(5)


def test_each_update_is_measured_from_the_one_before() -> None:
    first = make_report(BATCH, [job(1, "failed"), job(2, "failed"), job(3, "failed")], None, NOW)
    second = make_report(BATCH, [job(1), job(2, "failed")], first, NOW)
    third = make_report(BATCH, [job(1), job(2)], second, NOW)
    assert (second.newly_successful, second.gone) == (ids(1), ids(3))
    assert (third.newly_successful, third.gone, third.still_open) == (ids(2), (), ())
    assert third.number == 3


def test_a_report_that_is_made_again_after_a_crash_is_the_same() -> None:
    first = make_report(BATCH, [GOOD, RESUMABLE], None, NOW)
    letter = report_letter(BATCH, first, [GOOD, RESUMABLE], TO)
    again = make_report(BATCH, [RESUMABLE, GOOD], None, NOW + SECOND)
    assert replace(again, last_modified=NOW) == first
    assert report_letter(BATCH, again, [RESUMABLE, GOOD], TO).message_id == letter.message_id


STATUSES = st.dictionaries(
    st.integers(1, 30), st.sampled_from(["completed", "failed", "held", "processing"])
)


@given(STATUSES, STATUSES)
def test_every_job_is_accounted_for_exactly_once(
    then: dict[int, str], today: dict[int, str]
) -> None:
    first = make_report(BATCH, [job(*each) for each in then.items()], None, NOW)
    update = make_report(BATCH, [job(*each) for each in today.items()], first, NOW)
    stands = [*update.successful_jobs, *update.still_open]
    assert sorted(stands) == list(ids(*sorted(today)))
    assert set(update.failed_jobs) <= set(update.still_open)
    assert set(update.newly_successful) == set(update.successful_jobs) - set(first.successful_jobs)
    assert set(update.gone) == set(ids(*then)) - set(ids(*today))


def test_the_json_of_a_report_has_the_names_that_its_node_must_have() -> None:
    report = make_report(BATCH, [GOOD, RESUMABLE], None, NOW)
    text = msgspec.json.encode(report)
    node = msgspec.json.decode(text)
    assert node["last_modified"] == NOW
    assert node["failed_jobs"] == ["jid0000000002"]
    assert node["successful_jobs"] == ["jid0000000001"]
    assert msgspec.json.decode(text, type=BatchReport) == report
    empty = msgspec.json.decode(msgspec.json.encode(make_report(BATCH, [], None, NOW)))
    assert (empty["failed_jobs"], empty["successful_jobs"]) == ([], [])


def test_the_letter_that_confirms_a_batch() -> None:
    assert confirmation_letter(BATCH, 1_200, TO) == MailLetter(
        to=TO,
        subject="[Penstock] batch bid0000000001 of maps: queued, 1,200 jobs",
        text="""\
Your batch was queued with 1,200 jobs.

Batch:      bid0000000001
Collection: maps
Submitter:  anna
Payload:    https://example.org/in/maps.checkm
Submitted:  2026-11-15 09:58:30 UTC

You get a report when every job has ended.
To watch it until then: penstock ingest watch bid0000000001
""",
        message_id="bid0000000001.0197f0d0-0000-7000-8000-000000000001.queued",
    )


def test_the_letter_of_a_status_report() -> None:
    lines = [GOOD, RESUMABLE, LOST]
    report = make_report(BATCH, lines, None, NOW)
    assert report_letter(BATCH, report, lines, TO) == MailLetter(
        to=TO,
        subject="[Penstock] batch bid0000000001 of maps: 1 completed, 2 failed",
        text="""\
Batch:      bid0000000001
Collection: maps
Submitter:  anna
Payload:    https://example.org/in/maps.checkm
Submitted:  2026-11-15 09:58:30 UTC
Reported:   2026-11-15 10:00:00 UTC

1 completed, 2 failed.

Failed (2)
  jid0000000002  地図.tif  (local id loc002)
      https://example.org/2.tif was answered 404;  check the URL
      provisioning had succeeded: an administrator can resume it after that stage
  jid0000000003  map 3.tif
      line 4: no digest
      it cannot be resumed: correct the payload and submit it again

Completed (1)
  jid0000000001  Karte von Köln.tif
      ark:/99999/fk4abc, version 2, 1,234,567 bytes, local ids loc001, loc001b
""",
        message_id="bid0000000001.0197f0d0-0000-7000-8000-000000000001.report-1",
    )


def test_the_letter_of_an_update_report() -> None:
    first = make_report(BATCH, [replace(GOOD, status="failed"), LOST, job(4), job(5)], None, NOW)
    lines = [GOOD, replace(LOST, status="recording"), job(4)]
    report = make_report(BATCH, lines, first, NOW + SECOND)
    assert report_letter(BATCH, report, lines, TO) == MailLetter(
        to=TO,
        subject="[Penstock] batch bid0000000001 of maps: "
        "update, 1 more completed, 1 open, 1 deleted",
        text="""\
Batch:      bid0000000001
Collection: maps
Submitter:  anna
Payload:    https://example.org/in/maps.checkm
Submitted:  2026-11-15 09:58:30 UTC
Reported:   2026-11-15 10:00:01 UTC

2 completed, 0 failed, 1 under way.
Since the report before: 1 more completed, 1 open, 1 deleted.

Completed since the report before (1)
  jid0000000001  Karte von Köln.tif
      ark:/99999/fk4abc, version 2, 1,234,567 bytes, local ids loc001, loc001b

Still open (1)
  jid0000000003  map 3.tif
      is recording

Deleted since the report before (1)
  jid0000000005
""",
        message_id="bid0000000001.0197f0d0-0000-7000-8000-000000000001.report-2",
    )


def test_the_letter_of_a_batch_that_cannot_be_read() -> None:
    failed = replace(BATCH, message="line 3: the name ../x leaves its folder")
    letter = failure_letter(failed, TO)
    assert letter.subject == "[Penstock] batch bid0000000001 of maps: failed, nothing was stored"
    assert "\nline 3: the name ../x leaves its folder\n" in letter.text
    assert letter.text.startswith("Your batch failed before any job was made of it, and nothing")
    assert "\nCorrect the payload and submit it again. Where it only could not be" in letter.text
    assert letter.text.endswith(": penstock ingest resume bid0000000001\n")


def test_the_letter_of_a_batch_that_was_read_in_part() -> None:
    letter = failure_letter(replace(BATCH, message="it is gone", jobs=250), TO)
    assert letter.subject.endswith(": failed, not all of it was read")
    assert letter.text.startswith("Your batch failed after 250 jobs of it had been made, which go")


def test_a_payload_is_named_as_the_depositor_named_it() -> None:
    uploaded = replace(BATCH.submission, payload_url="payload:0197", payload_name="maps.zip")
    letter = confirmation_letter(replace(BATCH, submission=uploaded), 1, TO)
    assert "Payload:    maps.zip\n" in letter.text
    assert letter.subject.endswith(": queued, 1 job")


def test_a_long_list_is_cut_with_a_command_for_the_rest() -> None:
    lines = [job(n, "failed" if n % 2 else "completed") for n in range(1, 2_503)]
    letter = report_letter(BATCH, make_report(BATCH, lines, None, NOW), lines, TO)
    assert letter.subject.endswith(": 1,251 completed, 1,251 failed")
    assert letter.text.count("\n  jid") == 2_000
    for status in ("failed", "completed"):
        see = f"penstock ingest jobs bid0000000001 --status {status}"
        assert f"  and 251 more; see: {see}\n" in letter.text
    assert ids(1_999)[0] in letter.text
    assert ids(2_001)[0] not in letter.text


def test_a_list_of_a_thousand_is_whole() -> None:
    lines = [job(n) for n in range(1_000)]
    letter = report_letter(BATCH, make_report(BATCH, lines, None, NOW), lines, TO)
    assert letter.text.count("\n  jid") == 1_000
    assert "more; see" not in letter.text


def test_a_job_that_was_deleted_while_the_letter_was_written_is_still_named() -> None:
    report = make_report(BATCH, [GOOD, LOST], None, NOW)
    assert "\n  jid0000000003\n" in report_letter(BATCH, report, [GOOD], TO).text


FORGERY = "x\n\nCompleted (99)\r\n\u2028\x85\x00\x1b[2J"


@pytest.mark.parametrize("like", [GOOD, LOST])
@pytest.mark.parametrize(
    "typed",
    [
        {"name": FORGERY},
        {"primary": FORGERY},
        {"local_ids": (FORGERY, FORGERY)},
        {"message": FORGERY},
        {"last_successful_status": FORGERY},
        {"status": FORGERY},
    ],
    ids=lambda typed: next(iter(typed)),
)
def test_depositor_text_cannot_forge_a_line(like: ReportLine, typed: dict[str, Any]) -> None:
    line = replace(like, **typed)
    letter = report_letter(BATCH, make_report(BATCH, [line], None, NOW), [line], TO)
    assert "\nCompleted (99)" not in letter.text
    assert not any(each in letter.text for each in "\r\u2028\x85\x00\x1b")


def test_a_collection_cannot_forge_a_subject() -> None:
    forged = replace(
        BATCH, submission=replace(BATCH.submission, profile_name=FORGERY, submitter=FORGERY)
    )
    letter = confirmation_letter(forged, 1, TO)
    assert letter.subject == (
        "[Penstock] batch bid0000000001 of x  Completed (99)      [2J: queued, 1 job"
    )
    assert compose_message(letter, "penstock@example.org", NOW)


@given(st.text(max_size=3_000), st.lists(st.text(max_size=300), max_size=20))
def test_any_text_makes_a_letter_that_can_be_sent(text: str, local_ids: list[str]) -> None:
    line = ReportLine("jid1", text, "failed", text, tuple(local_ids), text, text)
    named = replace(BATCH, submission=replace(BATCH.submission, profile_name=text, submitter=text))
    for each in (line, replace(line, status="completed")):
        letter = report_letter(named, make_report(named, [each], None, NOW), [each], TO)
        assert compose_message(letter, "penstock@example.org", NOW)
        assert letter.text.count("\n  jid") == 1

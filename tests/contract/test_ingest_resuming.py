"""A file that was cut off is gone on with where it ended, if it is still the same file."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import Unavailable
from penstock.ingest.intake.fetching import FetchedFile, FetchStopped
from tests.contract.fetching_desk import BODY, OTHER, IngestService, digest, open_desk
from tests.patience import HANG_SECONDS
from tests.web import content, drip, head

WHEN = "Sun, 15 Nov 2026 12:00:00 GMT"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[IngestService]:
    with open_desk(tmp_path) as desk:
        yield desk


def test_a_file_that_is_cut_off_is_resumed(desk: IngestService) -> None:
    cut = content(BODY, cut_after=300_000)
    url = desk.web.on("/a", cut, cut, content(BODY))
    assert desk.fetch(url).digests["sha-512"] == digest(BODY, "sha512")
    assert desk.content() == BODY
    assert desk.ranges("/a") == [None, "bytes=300000-", "bytes=600000-"]
    assert desk.web.requests_to("/a")[1].headers["if-range"] == '"one"'
    assert desk.slept == [1.0, 1.0, 1.0]
    assert desk.at_hand == len(BODY)


def test_a_file_is_resumed_by_its_date_when_it_has_no_strong_etag(desk: IngestService) -> None:
    now = {"Date": "Sun, 15 Nov 2026 12:00:01 GMT"}
    cut = content(BODY, etag=None, modified=WHEN, cut_after=300_000, headers=now)
    whole = content(BODY, etag=None, modified=WHEN, headers={"ETag": 'W/"weak"'})
    url = desk.web.on("/a", cut, whole)
    desk.fetch(url)
    assert desk.content() == BODY
    assert desk.web.requests_to("/a")[1].headers["if-range"] == WHEN


@pytest.mark.parametrize("now", [{"Date": WHEN}, {}])
def test_a_file_that_was_written_just_now_is_not_resumed_by_its_date(
    desk: IngestService, now: dict[str, str]
) -> None:
    cut = content(BODY, etag=None, modified=WHEN, cut_after=300_000, headers=now)
    url = desk.web.on("/a", cut, content(OTHER, etag=None, modified=WHEN, headers=now))
    desk.fetch(url)
    assert desk.content() == OTHER
    assert desk.ranges("/a") == [None, None]


def test_another_process_continues_a_stopped_fetch(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, cut_after=300_000), content(BODY))
    with pytest.raises(Unavailable, match="in 1 tries"):
        desk.fetch(url, tries=1)
    assert desk.at_hand == 0
    assert desk.fetch(url).digests["sha-512"] == digest(BODY, "sha512")
    assert desk.ranges("/a") == [None, "bytes=300000-"]


def test_a_server_that_always_cuts_off_ends_the_fetch(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, etag=None, cut_after=1000))
    message = desk.refused(Unavailable, url)
    assert "in 4 tries" in message
    assert "try it again when its server works" in message
    assert desk.ranges("/a") == [None] * 4
    assert sum(desk.slept) == 1 + 2 + 4


def test_a_server_that_ignores_ranges_sends_it_all_again(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, cut_after=300_000), content(BODY, ranges=False))
    assert desk.fetch(url, digest=digest(BODY)).size == len(BODY)
    assert desk.ranges("/a") == [None, "bytes=300000-"]
    assert desk.content() == BODY


def test_a_file_that_changed_between_tries_is_begun_again(desk: IngestService) -> None:
    cut = content(BODY, cut_after=300_000)
    url = desk.web.on("/a", cut, content(OTHER, etag='"two"'))
    assert desk.fetch(url).digests["sha-512"] == digest(OTHER, "sha512")
    assert desk.content() == OTHER


def test_a_server_that_joins_two_versions_is_detected(desk: IngestService) -> None:
    joins = content(OTHER, etag='"two"', heeds_if_range=False)
    url = desk.web.on("/a", content(BODY, cut_after=300_000), joins)
    assert desk.fetch(url).digests["sha-512"] == digest(OTHER, "sha512")
    assert desk.ranges("/a") == [None, "bytes=300000-", None]


def test_a_part_without_a_mark_is_not_joined(
    desk: IngestService,
) -> None:
    joins = content(OTHER, etag=None, heeds_if_range=False)
    url = desk.web.on("/a", content(BODY, cut_after=300_000), joins)
    assert desk.fetch(url).digests["sha-512"] == digest(OTHER, "sha512")
    assert desk.ranges("/a") == [None, "bytes=300000-", None]


def test_a_wrong_digest_after_resuming_is_tried_from_the_first_byte(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, cut_after=300_000), content(OTHER))
    desk.fetch(url, digest=digest(OTHER))
    assert desk.content() == OTHER
    assert desk.ranges("/a") == [None, "bytes=300000-", None]
    assert desk.at_hand == len(OTHER)


def test_a_file_that_became_shorter_is_begun_again(desk: IngestService) -> None:
    shorter = content(BODY[:1000], heeds_if_range=False)
    url = desk.web.on("/a", content(BODY, cut_after=300_000), shorter)
    assert desk.fetch(url).size == 1000
    assert desk.ranges("/a") == [None, "bytes=300000-", None]


def test_a_part_that_lost_its_bytes_is_not_believed(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, cut_after=300_000), content(BODY))
    with pytest.raises(Unavailable):
        desk.fetch(url, tries=1)
    (part,) = desk.parts()
    with part.open("r+b") as file:
        file.truncate(299_999)
    desk.fetch(url)
    assert desk.ranges("/a") == [None, None]
    assert desk.content() == BODY


def test_bytes_after_those_on_disk_are_dropped(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, cut_after=300_000), content(BODY))
    with pytest.raises(Unavailable):
        desk.fetch(url, tries=1)
    (part,) = desk.parts()
    with part.open("ab") as file:
        file.write(bytes(5000))
    desk.fetch(url)
    assert desk.ranges("/a") == [None, "bytes=300000-"]
    assert desk.content() == BODY


def test_two_processes_do_not_write_one_file(desk: IngestService) -> None:
    began, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        if began.is_set():
            go_on.wait(HANG_SECONDS)
        began.set()

    url = desk.web.on("/a", drip([head(200, {"Content-Length": 8}), b"complete"], wait))
    found: list[FetchedFile] = []
    first = threading.Thread(target=lambda: found.append(desk.fetch(url)))
    first.start()
    assert began.wait(HANG_SECONDS)
    with pytest.raises(Unavailable, match="another process is fetching it"):
        desk.fetch(url)
    go_on.set()
    first.join()
    assert found[0].size == 8
    assert desk.content() == b"complete"


def test_a_file_whose_part_another_process_cleared_away_is_fetched_again(
    desk: IngestService,
) -> None:
    def clear() -> None:
        for part in desk.parts():
            part.unlink()

    whole = head(200, {"Content-Length": 8})
    url = desk.web.on("/a", drip([whole, b"complete"], clear), content(b"complete"))
    assert desk.fetch(url).size == 8
    assert desk.content() == b"complete"
    assert len(desk.web.requests_to("/a")) == 2


def test_a_file_that_another_process_clears_away_each_time_is_left_for_later(
    desk: IngestService,
) -> None:
    def clear() -> None:
        for part in desk.parts():
            part.unlink()

    whole = head(200, {"Content-Length": 8})
    url = desk.web.on("/a", drip([whole, b"complete"], clear))
    with pytest.raises(FetchStopped, match="another process has cleared the folder"):
        desk.fetch(url)


def test_a_stop_keeps_the_partial_file(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY))
    with pytest.raises(FetchStopped):
        desk.fetch(url, stop=lambda: desk.at_hand > 100_000)
    desk.fetch(url)
    first, second = desk.ranges("/a")
    assert first is None
    assert second is not None
    assert desk.content() == BODY

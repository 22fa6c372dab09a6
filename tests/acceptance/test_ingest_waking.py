"""A worker that sleeps over its job's end, and wakes while another deposit has its object."""

import errno
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.objects import Objects
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.web import content

LATE, TIMELY = b"late,1\n", b"timely,2\n"


class Nap:
    """Has the first thread that writes this content sleep in the middle of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.asleep = threading.Event()
        self.wake = threading.Event()
        self.is_over = threading.Event()
        put = Objects.put

        def nap(objects: Objects, key: str, *args: Any, **options: Any) -> None:
            if key.endswith(name) and not self.asleep.is_set():
                self.asleep.set()
                assert self.wake.wait(HANG_SECONDS)
                put(objects, key, *args, **options)
                self.is_over.set()
            else:
                put(objects, key, *args, **options)

        monkeypatch.setattr(Objects, "put", nap)


def test_a_worker_that_wakes_after_its_job_was_failed_takes_nothing_from_the_next_deposit(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    nap = Nap(monkeypatch, "/producer/map.csv")
    first = site.deposit(site.web.on("/1/map.csv", content(LATE)), local_id="loc")
    with site.working():
        assert nap.asleep.wait(HANG_SECONDS)
        failed = site.desk.fail_job(ADMIN, site.only_job(first).id)
        second = site.deposit(site.web.on("/2/map.csv", content(TIMELY)), local_id="loc")
        assert site.ended(second).status is BatchState.COMPLETED
        ark = site.only_job(second).identifiers.primary
        assert site.content(ark) == {"map.csv": TIMELY}
        nap.wake.set()
        assert nap.is_over.wait(HANG_SECONDS)
    assert site.only_job(first) == failed
    assert site.content(ark) == {"map.csv": TIMELY}
    site.check()
    site.desk.resume_job(ADMIN, failed.id)
    with site.working():
        until(lambda: site.only_job(first).status is IngestState.COMPLETED)
    assert site.only_job(first).identifiers.primary == ark
    assert site.content(ark, version=1) == {"map.csv": TIMELY}
    assert site.content(ark) == {"map.csv": LATE}


def test_a_late_worker_without_files_does_not_fail_the_job(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    batch = site.deposit(site.web.on("/map.csv", content(LATE)))

    def gone(path: Path, data: bytes) -> int:
        site.desk.fail_job(ADMIN, site.only_job(batch).id)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.setattr(Path, "write_bytes", gone)
        assert site.run(batch)[0].status is BatchState.FAILED
        until(lambda: "another worker has continued it meanwhile" in caplog.text)
    assert site.only_job(batch).message == "stopped by ann: asked for"
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []

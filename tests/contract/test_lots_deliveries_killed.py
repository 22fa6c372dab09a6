"""A deliverer that dies between any two steps loses nothing and keeps the order."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from penstock.clock import Micros
from penstock.lots.rows import SubscriberRow
from penstock.outgoing import Posted
from penstock.store.write_queue import WriteQueue
from penstock.subscribers import sender
from penstock.subscribers.delivery import LEASE_SECONDS, Deliverer
from penstock.subscribers.payloads import EventPosts
from tests.contract.outbox_desk import IngestService, deliveries, desk, firsts
from tests.doors.waiting import until
from tests.web import Web, status

__all__ = ["desk"]

LOTS = 4
STEPS_MAX = 60


class _Killed(SystemExit):
    """The process is gone: nothing after this happens."""


class _Steps:
    """Counts what a deliverer does to the world outside, and kills it at one of these steps."""

    def __init__(self, last: int, *, done: bool) -> None:
        self._left = last
        self._done = done  # whether the last step still takes effect
        self._lock = threading.Lock()
        self.dead = threading.Event()

    def __enter__(self) -> None:
        with self._lock:
            if self.dead.is_set():
                raise _Killed
            self._left -= 1
            if self._left == 0 and not self._done:
                self.dead.set()
                raise _Killed

    def __exit__(self, *error: object) -> None:
        with self._lock:
            # Below 0 if another thread took a step meanwhile, which must not save this one.
            if self._left <= 0 and self._done:
                self.dead.set()
                raise _Killed


class _MortalCatalog:
    """A catalog whose writes are steps."""

    def __init__(self, catalog: WriteQueue, steps: _Steps) -> None:
        self._catalog = catalog
        self._steps = steps

    def read(self) -> Any:
        if self._steps.dead.is_set():
            raise _Killed
        return self._catalog.read()

    def submit(self, command: Any) -> "Future[Any]":
        with self._steps:
            done: Future[Any] = Future()
            try:
                done.set_result(self._catalog.submit(command).result())
            except Exception as error:
                done.set_exception(error)
            return done


class _MortalDeliverer(Deliverer):
    """A deliverer whose calls and looks are steps too."""

    def __init__(self, desk: IngestService, steps: _Steps) -> None:
        mortal: Any = _MortalCatalog(desk.catalog, steps)
        super().__init__(mortal, desk.database, lambda: desk.now)
        self._steps = steps

    def load_posts(self, row: SubscriberRow, after: int) -> list[EventPosts]:
        with self._steps:
            return super().load_posts(row, after)

    def send(self, post: Callable[[Micros], Posted]) -> Posted:
        with self._steps:
            return super().send(post)


def _die_at(desk: IngestService, step: int, *, done: bool, name: str) -> bool:
    """Deliver until dead, or until there is nothing left: whether it died."""
    steps = _Steps(step, done=done)
    deliverer = _MortalDeliverer(desk, steps)
    deliverer.start()
    until(
        lambda: (
            steps.dead.is_set()
            or (desk.subscriber(name).cursor == LOTS and not desk.subscriber(name).owner)
        )
    )
    died = steps.dead.is_set()
    steps.dead.set()
    deliverer.stop()
    return died


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_it_dies_at_every_step(
    desk: IngestService, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "SAVE_SECONDS", 0.0)
    desk.publish(*map(str, range(LOTS)))
    deaths = 0
    with Web() as web:
        for step in range(1, STEPS_MAX):
            name = f"s{step}"
            desk.subscribe(web.on(f"/{name}", status(200)), name, after=0)
            if not _die_at(desk, step, done=done, name=name):
                break
            deaths += 1
            desk.pass_seconds(LEASE_SECONDS + 1)
            with desk.deliverer():
                desk.wait_for(LOTS, name)
            found = web.requests_to(f"/{name}", "POST")
            names = deliveries(found)
            assert firsts(names) == [f"{name}-{number}" for number in range(1, LOTS + 1)]
            assert len(names) <= LOTS + 1
            bodies = dict(zip(names, (request.body for request in found), strict=True))
            assert all(bodies[n] == r.body for n, r in zip(names, found, strict=True))
        else:
            pytest.fail("it never came to its end")
    # Taking, looking, calling and saving for each, looking again, letting go.
    assert deaths >= 2 * LOTS + 4


def _has_had(web: Web, count: int) -> bool:
    return len(firsts(deliveries(web.requests_to("/lots", "POST")))) >= count


def test_a_process_that_is_killed_again_and_again_loses_nothing(
    desk: IngestService, database_url: str
) -> None:
    lots = 40
    with Web() as web:
        desk.subscribe(web.on("/lots", status(200)))
        desk.publish(*map(str, range(lots)))
        for killed_after in (1, 3, 8, 20, 21, lots):
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.contract.outbox_process", database_url],
                stderr=subprocess.PIPE,
            )
            until(partial(_has_had, web, killed_after))
            process.kill()
            _, errors = process.communicate()
            assert b"Traceback" not in errors
        with desk.deliverer(lease_seconds=0.5):
            desk.now = desk.subscriber().lease_until
            desk.wait_for(lots)
        names = deliveries(web.requests_to("/lots", "POST"))
    assert firsts(names) == [f"pager-{number}" for number in range(1, lots + 1)]

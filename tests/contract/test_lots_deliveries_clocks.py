"""Leases and back-offs of subscribers, when a clock was ahead and is put back."""

import pytest

from penstock.errors import Conflict
from penstock.subscribers.commands import AcquireSubscriber
from tests.contract.outbox_desk import IngestService, desk
from tests.doors.waiting import until
from tests.web import Web, status

pytestmark = pytest.mark.one_database

__all__ = ["desk"]


@pytest.mark.parametrize("put_back_seconds", [21, 10 * 365 * 86_400])
def test_a_lease_by_a_clock_that_was_ahead_is_over(
    desk: IngestService, put_back_seconds: int
) -> None:
    desk.subscribe("https://example.org/")
    submit = desk.catalog.submit
    submit(AcquireSubscriber("pager", "one", 10)).result()
    desk.pass_seconds(-put_back_seconds)
    assert submit(AcquireSubscriber("pager", "two", 10)).result().owner == "two"


def test_a_lease_by_a_clock_that_is_a_little_ahead_holds(desk: IngestService) -> None:
    desk.subscribe("https://example.org/")
    desk.catalog.submit(AcquireSubscriber("pager", "one", 10)).result()
    desk.pass_seconds(-9)
    with pytest.raises(Conflict, match="one delivers"):
        desk.catalog.submit(AcquireSubscriber("pager", "two", 10)).result()


def test_a_receiver_is_not_left_alone_for_as_long_as_a_clock_was_ahead(desk: IngestService) -> None:
    desk.pass_seconds(10 * 365 * 86_400)
    with Web() as web:
        desk.subscribe(web.on("/lots", status(503), status(200)))
        desk.publish("1")
        with desk.deliverer(sweep_seconds=0.05):
            until(lambda: desk.subscriber().failures == 1)
            desk.pass_seconds(-10 * 365 * 86_400)
            desk.wait_for(1)

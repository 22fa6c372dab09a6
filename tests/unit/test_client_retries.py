"""When a call is made again, decided without a server."""

import time
from collections.abc import Iterator

import pytest

from penstock.client import ApiError, Unreachable
from penstock.client.errors import Failure
from penstock.client.request import Flow, Pause, Request, get, patiently, post
from penstock.schema.shape import Empty
from tests.doors.client_samples import samples

LATER = time.monotonic() + 3600
LOST = Unreachable("gone", may_be_done=True)
REFUSED = Unreachable("refused", may_be_done=False)

# What is not as good twice as once; everything else may be sent again.
ONCE = {
    "accept_lot",
    "backfill",
    "cancel_backfill",
    "clean_lot",
    "create_dataset",
    "create_key",
    "create_namespace",
    "fail_ingest_job",
    "hold_batch",
    "hold_ingest_job",
    "pause_backfill",
    "register_lots",  # that renews them
    "release_dataset",
    "release_job",
    "release_lot",
    "release_work",
    "release_batch",
    "release_held",
    "release_ingest_job",
    "end_claim",
    "remove_lot",
    "resubmit",
    "resume_backfill",
    "resume_batch",
    "resume_ingest_job",
    "update_report",
}


def after(request: Request[Empty], *failures: Failure, until: float = LATER) -> Iterator[object]:
    """What is done after each failure; what is raised at the end."""
    flow: Flow[Empty] = patiently(request, until)
    assert next(flow) is request
    for failure in failures:
        step = flow.throw(failure)
        if isinstance(step, Pause):
            yield step.seconds
            assert flow.send(None) is request


def test_only_what_is_as_good_twice_is_sent_again() -> None:
    assert {sample.name for sample in samples() if not sample.request.repeatable} == ONCE


@pytest.mark.parametrize("failure", [LOST, REFUSED, *(ApiError(c, "") for c in (429, 502, 503))])
def test_what_may_be_repeated_is(failure: Failure) -> None:
    waits = list(after(get(Empty, "x"), *[failure] * 8))
    assert len(waits) == 8
    assert all(0 < wait <= 2 for wait in waits if isinstance(wait, float))
    assert waits[0] != waits[-1]


@pytest.mark.parametrize("failure", [LOST, *(ApiError(c, "") for c in (502, 503, 504))])
def test_what_may_have_been_done_is_not_done_twice(failure: Failure) -> None:
    with pytest.raises(type(failure)):
        list(after(post(Empty, "x"), failure))


@pytest.mark.parametrize("failure", [REFUSED, ApiError(429, "")])
def test_what_was_not_done_is_done_again(failure: Failure) -> None:
    assert len(list(after(post(Empty, "x"), failure))) == 1


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 413, 422, 500])
def test_a_refusal_is_final(code: int) -> None:
    with pytest.raises(ApiError):
        list(after(get(Empty, "x"), ApiError(code, "")))


def test_the_server_says_how_long_to_wait() -> None:
    assert list(after(get(Empty, "x"), ApiError(429, "", retry_after_seconds=7))) == [7]


def test_there_is_an_end_to_patience() -> None:
    with pytest.raises(Unreachable):
        list(after(get(Empty, "x"), LOST, until=time.monotonic()))
    soon = time.monotonic() + 5
    with pytest.raises(ApiError) as refused:
        list(after(get(Empty, "x"), ApiError(503, "", retry_after_seconds=60), until=soon))
    assert refused.value.retry_after_seconds == 60

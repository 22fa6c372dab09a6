"""What the client raises: it gets from process to process, and is a PenstockError."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from penstock import errors
from penstock.client import ApiError, ClaimLost, Unreachable
from penstock.errors import PenstockError

PUBLIC = (
    *(
        found("why")
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, PenstockError)
    ),
    errors.Busy("why", retry_after_seconds=7),
    ClaimLost("why"),
    Unreachable("why", may_be_done=False),
    ApiError(409, "why"),
    ApiError(429, "why", 7),
)


@pytest.mark.parametrize("error", PUBLIC, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_in_another_process(error: PenstockError) -> None:
    error.add_note("and where")
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found), vars(found)) == (type(error), "why", vars(error))


def refuse() -> None:
    raise ApiError(404, "there is no such dataset", 3)


def test_a_pool_of_processes_hands_on_what_a_call_was_refused_with() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(ApiError, match="no such dataset") as caught:
            pool.submit(refuse).result()
        assert (caught.value.code, caught.value.retry_after_seconds) == (404, 3)
        assert pool.submit(int).result() == 0

"""What the client raises: it gets from process to process, and is a PenstockError."""

import asyncio
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from penstock import errors
from penstock.client import ApiError, AsyncClient, ClaimLost, Client, Unreachable
from penstock.client.transport import connection_settings
from penstock.errors import Invalid, PenstockError
from tests.web import Web, status

URL = "http://127.0.0.1:9"  # where nobody listens

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


@pytest.mark.parametrize("key", ["nökey", "no\nkey", "no\rkey", "no\0key", "\ud800"])
@pytest.mark.parametrize("make", [Client, AsyncClient])
def test_a_key_that_cannot_be_sent_is_refused_at_once_and_not_shown(
    make: type[Client] | type[AsyncClient], key: str
) -> None:
    with pytest.raises(Invalid, match="key cannot be sent") as caught:
        make(URL, key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("key", ["pk_1\n", " pk_1\r\n", "pk_1"])
def test_what_is_around_a_key_in_its_file_is_not_sent(key: str) -> None:
    assert connection_settings(URL, key, 1)["headers"] == {"authorization": "Bearer pk_1"}
    assert connection_settings(URL, "\n", 1)["headers"] == {}


def test_a_client_that_is_closed_says_so() -> None:
    client = Client(URL)
    client.close()
    with pytest.raises(Invalid, match="this client is closed"):
        client.namespaces()
    with pytest.raises(Invalid, match="this client is closed"):
        list(client.verify("shop", "orders"))


def test_a_client_of_an_event_loop_that_is_closed_says_so() -> None:
    async def look() -> None:
        client = AsyncClient(URL)
        await client.close()
        with pytest.raises(Invalid, match="this client is closed"):
            await client.namespaces()
        with pytest.raises(Invalid, match="this client is closed"):
            [step async for step in client.verify("shop", "orders")]

    asyncio.run(look())


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.search("caf\udce9"),
        lambda client: client.locks(namespace="\ud800"),
        lambda client: client.events("shop", after="\udfff"),
        lambda client: client.put_namespace("shop", owner="caf\udce9"),
        lambda client: client.create_run("shop", "clean", args={"made of": {"bytes": object()}}),
        lambda client: client.emit({"producer": "\ud800"}),
        lambda client: client.put_arc("shop", "a", {"workload": ["echo", "\udcff"]}),
        lambda client: client.set_subscriber("x", "webhook", "http://\udcff"),
        lambda client: next(client.lot_events(dataset="\udcff")),
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_sent(
    ask: Callable[[Client], object],
) -> None:
    with Client(URL) as client, pytest.raises(Invalid, match=r"cannot be (sent|written)"):
        ask(client)


def test_who_is_no_penstock_is_not_listened_to() -> None:
    """It would be asked again and again, and nothing be heard."""
    page = status(200, {"content-type": "text/html"}, b"<h1>It works</h1>\n")
    with Web() as web, Client(web.url) as client:
        for path, listen in (("events/stream", client.lot_events), ("check", client.check)):
            web.on(f"/api/v1/{path}", page)
            with pytest.raises(ApiError, match="text/html instead of"):
                next(iter(listen()))


def test_a_name_that_is_no_text_is_told_as_that() -> None:
    with Client(URL) as client, pytest.raises(Invalid, match="a name is a text, and None is none"):
        client.dataset(None, "x")  # type: ignore[arg-type]

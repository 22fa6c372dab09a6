"""The types of calls in both colours; what is checked here, a type checker checks."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import penstock
from penstock.client import AsyncClaim, AsyncClaims, Claim, Claims
from penstock.schema.catalog import Dataset, EventInterval, VersionId
from penstock.schema.subscribers import LotEvent

if TYPE_CHECKING:
    from typing import assert_type

    def blocking(client: penstock.Client, claim: Claim) -> None:
        assert_type(client.dataset("shop", "orders"), Dataset)
        assert_type(client.register_lots("shop", "orders", ["1"]), int)
        assert_type(client.event_stats("WEEK"), tuple[EventInterval, ...])
        assert_type(client.claims("shop/clean"), Claims)
        assert_type(next(iter(client.claims("shop/clean"))), Claim)
        assert_type(client.lot_events(), Iterator[LotEvent])
        assert_type(claim.complete(), Sequence[VersionId])
        assert_type(client.delete_arc("shop", "clean"), None)
        client.dataset("shop")  # type: ignore[call-arg]
        client.dataset("shop", name=1)  # type: ignore[arg-type]
        client.event_stats("YEAR")  # type: ignore[arg-type]

    async def awaited(client: penstock.AsyncClient, claim: AsyncClaim) -> None:
        asked: Callable[[str, str], Coroutine[Any, Any, Dataset]] = client.dataset
        assert_type(await asked("shop", "orders"), Dataset)
        assert_type(await client.dataset("shop", "orders"), Dataset)
        assert_type(await client.register_lots("shop", "orders", ["1"]), int)
        assert_type(client.claims("shop/clean"), AsyncClaims)
        assert_type(client.lot_events(), AsyncIterator[LotEvent])
        assert_type(await claim.complete(), Sequence[VersionId])
        async for found in client.claims("shop/clean"):
            assert_type(found, AsyncClaim)
        await client.dataset("shop")  # type: ignore[call-arg]


def test_a_method_is_documented_in_both_colours() -> None:
    for client in (penstock.Client(), penstock.AsyncClient()):
        assert client.dataset.__name__ == "dataset"
        assert client.dataset.__doc__ == "One dataset."

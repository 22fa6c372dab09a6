"""One claim, as a worker holds it: in a thread, or in an event loop."""

from types import TracebackType
from typing import Self, TypeVar

from penstock.client import lot_documents as docs
from penstock.client.hold import ClaimLost, Hold, Keeper, Onward
from penstock.client.operation import Awaiting, Blocking
from penstock.client.request import Flow
from penstock.errors import PenstockError

T = TypeVar("T")


class Claim(Hold, Blocking):
    """One job's hold on one lot.

    In a `with` block its lease is extended in the background. Leaving the block completes it; an
    error fails it with the error's text; an interrupt gives it back. All three raise ClaimLost
    where the lease was lost meanwhile, except that an error of the block goes first.
    """

    def __init__(
        self,
        caller: Blocking,
        keeper: Keeper,
        shown: docs.Claim,
        taken_at: float,
        onward: Onward | None = None,
    ) -> None:
        super().__init__(keeper, shown, taken_at, onward)
        self._caller = caller

    def _perform(self, flow: Flow[T]) -> T:
        return self._caller._perform(flow)

    def __enter__(self) -> Self:
        self.keep()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._keeper.drop(self)
        if self._ended or isinstance(error, ClaimLost):
            return
        if error is None:
            self.complete()
            return
        try:
            if isinstance(error, Exception):
                self.fail(told(error))
            else:
                self.release()
        except PenstockError as refusal:
            error.add_note(f"penstock: {refusal}")


class AsyncClaim(Hold, Awaiting):
    """One job's hold on one lot, in an `async with` block; else as a Claim is.

    Work that does not await keeps the lease from being extended: give it to a thread.
    """

    def __init__(
        self,
        caller: Awaiting,
        keeper: Keeper,
        shown: docs.Claim,
        taken_at: float,
        onward: Onward | None = None,
    ) -> None:
        super().__init__(keeper, shown, taken_at, onward)
        self._caller = caller

    async def _perform(self, flow: Flow[T]) -> T:
        return await self._caller._perform(flow)

    async def __aenter__(self) -> Self:
        self.keep()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._keeper.drop(self)
        if self._ended or isinstance(error, ClaimLost):
            return
        if error is None:
            await self.complete()
            return
        try:
            if isinstance(error, Exception):
                await self.fail(told(error))
            else:
                await self.release()
        except PenstockError as refusal:
            error.add_note(f"penstock: {refusal}")


def told(error: Exception) -> str:
    """An error as the server is told of it."""
    return f"{type(error).__name__}: {error}"

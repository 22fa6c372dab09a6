"""Carrying out changes on ZooKeeper, each at most once, whatever becomes of the connection."""

import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from penstock.errors import Conflict, NotFound, PenstockError, Unavailable
from penstock.ingest.sql.commands.queue import lost_lock
from penstock.ingest.zk.changes import Guarded, Lock
from penstock.ingest.zk.locks import Locks
from penstock.zk import Check, Create, Delete, Op, Refused, Result, Session, Unknown

TRIES_MAX: Final = 6  # of a change whose answer is lost, or whose lock comes and goes

Node = tuple[bytes, int] | None


class Done(NamedTuple):
    """A change was carried out. `is_certain` is False if somebody else may have made the same."""

    version: int
    is_certain: bool


class _Status(msgspec.Struct):
    status: str


# Decoders are made here because two threads that both decode a class first can crash msgspec.
_decode_status = msgspec.json.Decoder(_Status).decode


class _Try:
    """One change under way."""

    def __init__(self, change: Guarded, is_locked: bool) -> None:
        self.change = change
        self.is_locked = is_locked
        self.is_unknown = False  # an earlier try may have been carried out
        self.outcome: Done | PenstockError | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is to be tried, for the first time or again."""
        return self.outcome is None or isinstance(self.outcome, Unavailable)


class Writing:
    """Sends transactions, and looks where an answer is missing or is no."""

    def __init__(self, session: Session, locks: Locks) -> None:
        self._session = session
        self._locks = locks

    def carry_out(self, changes: Sequence[Guarded]) -> list[Done | PenstockError]:
        """What became of each change."""
        tries = [_Try(change, change.lock is Lock.OURS) for change in changes]
        self._look_at_locks([one for one in tries if one.change.lock is Lock.ANY])
        for _ in range(TRIES_MAX):
            left = [one for one in tries if one.is_open]
            if not left or not self._try(left):
                break
        self._look_at_refused([one for one in tries if isinstance(one.outcome, PenstockError)])
        return [self._ended(one) for one in tries]

    def _look_at_locks(self, by_hand: list[_Try]) -> None:
        found = self._session.get_many([one.change.lock_path for one in by_hand])
        for one, lock in zip(by_hand, found, strict=True):
            one.is_locked = lock is not None

    def _look_at_refused(self, tries: list[_Try]) -> None:
        """Keep track of our locks: an administrator may have taken some of them away."""
        ours = [
            (one.change.node, one.change.locked_by)
            for one in tries
            if one.change.lock is Lock.OURS and not isinstance(one.outcome, Unavailable)
        ]
        with contextlib.suppress(Unavailable):
            self._locks.look_at(ours)

    def _try(self, tries: list[_Try]) -> bool:
        """Try each once; False if ZooKeeper cannot be asked what became of them."""
        sendable = [one for one in tries if not self._is_lost(one)]
        outcomes = self._session.multi_many(_ops(one) for one in sendable)
        for one, outcome in zip(sendable, outcomes, strict=True):
            one.outcome = _done(outcome) if isinstance(outcome, list) else outcome
            one.is_unknown |= isinstance(outcome, Unknown)
        failed = [one for one in tries if not isinstance(one.outcome, Done)]
        try:
            if any(isinstance(one.outcome, Unavailable) for one in failed):
                self._session.sync()
            nodes = self._session.get_many([one.change.status_path for one in failed])
            for one, node in zip(failed, nodes, strict=True):
                self._settle(one, node)
        except Unavailable as error:
            for one in failed:
                one.outcome = one.outcome or error
            return False
        return True

    def _is_lost(self, one: _Try) -> bool:
        """Whether the lock that it relies on is gone, as all of an earlier epoch are."""
        change = one.change
        return change.lock is Lock.OURS and not self._locks.holds(change.node, change.locked_by)

    def _settle(self, one: _Try, node: Node) -> None:
        """Decide by what is there now."""
        change = one.change
        if node is None:
            gone = NotFound(f"{change.kind} {change.id} is not there any more")
            is_done = change.data is None and one.is_unknown
            one.outcome = Done(change.version, True) if is_done else gone
        elif node[1] == change.version + 1 and node[0] == change.data and self._is_proved(change):
            one.outcome = Done(node[1], one.is_unknown or change.proof is not None)
        elif node[1] != change.version:
            one.outcome = Conflict(
                f"{change.kind} {change.id} was {change.was} when it was read and is "
                f"{_status(node[0])} now; look at it again"
            )
        elif isinstance(one.outcome, Refused):
            self._settle_refusal(one, one.outcome)
        elif self._is_lost(one):
            one.outcome = self._lost_lock(change)

    def _settle_refusal(self, one: _Try, refusal: Refused) -> None:
        """The status is as it was read: something else was not."""
        change = one.change
        if refusal.op.path == change.lock_path:
            if change.lock is Lock.ANY:
                one.is_locked = not one.is_locked
                one.outcome = None
            else:
                one.outcome = self._lost_lock(change)

    def _lost_lock(self, change: Guarded) -> Conflict:
        lock = self._session.get(change.lock_path)
        owner = "" if lock is None else lock[0].decode(errors="replace")
        return lost_lock(change.kind, change.id, owner)

    def _is_proved(self, change: Guarded) -> bool:
        return change.proof is None or self._session.exists(change.proof)

    def _ended(self, one: _Try) -> Done | PenstockError:
        change, outcome = one.change, one.outcome
        if isinstance(outcome, Done):
            if not change.keep_lock:
                self._locks.forget(change.node, change.locked_by)
            return outcome
        return outcome or Conflict(
            f"the lock on {change.kind} {change.id} comes and goes; nothing was changed, try again"
        )


def _ops(one: _Try) -> list[Op]:
    """The whole transaction: the change, its lock, and last the node that only then is empty."""
    change = one.change
    gone: list[Op] = [Delete(change.node)] if change.data is None else []
    return [*change.ops, *_lock_ops(one), *gone]


def _lock_ops(one: _Try) -> list[Op]:
    change, path = one.change, one.change.lock_path
    if change.keep_lock and change.lock is Lock.ANY:
        return []
    if one.is_locked:
        return [Check(path, -1) if change.keep_lock else Delete(path)]
    # There is no check for what is not there, but only such a node can be made.
    return [Create(path), Delete(path)]


def _done(results: list[Result]) -> Done:
    version = results[0]
    return Done(version if isinstance(version, int) else 0, True)


def _status(data: bytes) -> str:
    try:
        return _decode_status(data).status
    except msgspec.DecodeError:
        return "unreadable"

"""The locks of one session on ZooKeeper: ephemeral nodes that say under which claim they are."""

import contextlib
import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from penstock import ids
from penstock.errors import PenstockError, Unavailable
from penstock.zookeeper import Check, Create, Delete, Op, Refused, Session

AT_ONCE_MAX: Final = 500  # locks in one transaction


class Held(Struct, frozen=True):
    """A lock on a node: its name, and the version that the node's status had."""

    node: str
    name: str
    version: int


class Taken(NamedTuple):
    """Nodes that were locked, under which name, and whether they have the versions expected."""

    name: str
    nodes: list[str]
    is_checked: bool


class Locks:
    """What this session has locked, and what it may have locked without knowing.

    A name belongs to one claim, and to one epoch of the session: when the session is lost,
    whatever was claimed before is refused.
    """

    def __init__(self, session: Session, owner: str) -> None:
        self._session = session
        self._family = f"{owner}/{ids.new_id()[-8:]}"  # its end is chance, not time
        self._numbers = itertools.count(1)
        self._mutex = threading.Lock()
        self._freeing = threading.Lock()
        self._held: dict[str, str] = {}  # node: the name it is locked under
        self._doubtful: set[tuple[str, str]] = set()  # node and name

    def has(self, node: str) -> bool:
        """Whether this session has locked a node."""
        return self._held.get(node, "").startswith(self._prefix)

    def holds(self, node: str, name: str) -> bool:
        """Whether a node is locked under this very name."""
        return self._held.get(node) == name and name.startswith(self._prefix)

    def take(self, nodes: Sequence[str], versions: Mapping[str, int]) -> Taken:
        """Lock these nodes, if possible at once and only if they have the versions named."""
        prefix = self._prefix
        name = f"{prefix}{next(self._numbers)}"
        try:
            made, is_checked = self._make(nodes, name.encode(), versions)
        except PenstockError:
            self.drop(nodes, name)
            raise
        if prefix != self._prefix:  # the session was lost meanwhile: nobody knows whose they are
            self.drop(nodes, name)
            return Taken(name, [], is_checked)
        with self._mutex:
            self._held.update(dict.fromkeys(made, name))
        return Taken(name, made, is_checked)

    def drop(self, nodes: Sequence[str], name: str) -> None:
        """Give up locks of this name, wherever there are any, at the next occasion."""
        with self._mutex:
            self._doubtful.update((node, name) for node in nodes)
            for node in nodes:
                if self._held.get(node) == name:
                    del self._held[node]

    def forget(self, node: str, name: str) -> None:
        """A lock is gone: it went with a change, or an administrator took it away."""
        with self._mutex:
            if self._held.get(node) == name:
                del self._held[node]

    def free(self, items: Sequence[Held]) -> None:
        """Give up locks, now or, if the connection is broken, as soon as it is back.

        A change by hand takes a lock away, and another session may have it by now; but then the
        status has another version.
        """
        for start in range(0, len(items), AT_ONCE_MAX):
            part = items[start : start + AT_ONCE_MAX]
            [outcome] = self._session.multi_many([[op for item in part for op in _freeing(item)]])
            for item in part:
                if isinstance(outcome, PenstockError):
                    self.drop([item.node], item.name)
                else:
                    self.forget(item.node, item.name)
        self.free_doubtful()

    def free_doubtful(self) -> None:
        """Give up locks that nobody here works under.

        One thread at a time: a second one, that saw the lock before the first removed it, would
        remove what another session has put in its place. An administrator who does the same
        changes the status, whose version is checked.
        """
        if not self._doubtful:
            return
        with self._freeing, contextlib.suppress(Unavailable):
            with self._mutex:
                doubtful = list(self._doubtful)
            states = self._session.get_many([_status(node) for node, _ in doubtful])
            found = self._session.get_many([_lock(node) for node, _ in doubtful])
            versions = {
                one: state
                for one, state, lock in zip(doubtful, states, found, strict=True)
                if lock and lock[0] == one[1].encode()
            }
            ours = list(versions)
            outcomes = self._session.multi_many(
                [*([Check(_status(one[0]), state[1])] if state else ()), Delete(_lock(one[0]))]
                for one, state in versions.items()
            )
            answers = zip(ours, outcomes, strict=True)
            left = {one for one, outcome in answers if isinstance(outcome, PenstockError)}
            with self._mutex:
                self._doubtful -= set(doubtful) - left

    def look_at(self, locks: Sequence[tuple[str, str]]) -> None:
        """Look whether these locks, under which changes were refused, are there at all."""
        found = self._session.get_many([_lock(node) for node, _ in locks])
        for (node, name), lock in zip(locks, found, strict=True):
            if lock is None or lock[0] != name.encode():
                self.forget(node, name)

    @property
    def _prefix(self) -> str:
        return f"{self._family}.{self._session.epoch}."

    def _make(
        self, nodes: Sequence[str], data: bytes, versions: Mapping[str, int]
    ) -> tuple[list[str], bool]:
        """Those that could be locked: all at once if nobody else wants them, else one by one."""
        if nodes and len(nodes) <= AT_ONCE_MAX:
            checks = [Check(_status(n), versions[n]) for n in nodes if n in versions]
            locks = [Create(_lock(node), data, ephemeral=True) for node in nodes]
            with contextlib.suppress(Refused):
                self._session.multi([*checks, *locks])
                return list(nodes), True
        found = self._session.get_many([_lock(node) for node in nodes])
        free = [node for node, lock in zip(nodes, found, strict=True) if lock is None]
        made = self._session.create_ephemerals([_lock(node) for node in free], data)
        return [node for node, is_made in zip(free, made, strict=True) if is_made], False


def _lock(node: str) -> str:
    return f"{node}/lock"


def _status(node: str) -> str:
    return f"{node}/status"


def _freeing(item: Held) -> list[Op]:
    return [Check(_status(item.node), item.version), Delete(_lock(item.node))]

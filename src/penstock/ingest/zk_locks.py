"""The locks of one session on ZooKeeper: ephemeral nodes that carry the session's name."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from penstock import ids
from penstock.errors import PenstockError, Unavailable
from penstock.zk import Check, Create, Delete, Op, Refused, Session

AT_ONCE_MAX: Final = 500  # locks in one transaction


class Held(Struct, frozen=True):
    """A node that is locked, and the version that its status had when that was last known."""

    node: str
    version: int


class Taken(NamedTuple):
    """Nodes that were locked, under which name, and whether they have the versions expected."""

    name: str
    nodes: list[str]
    is_checked: bool


class Locks:
    """What this session has locked, and what it may have locked without knowing.

    A name belongs to one epoch of the session: when the session is lost, its name changes, and
    whatever was claimed under the old one is refused.
    """

    def __init__(self, session: Session, owner: str) -> None:
        self._session = session
        self._family = f"{owner}/{ids.new_id()[:8]}."
        self._mutex = threading.Lock()
        self._held: dict[str, str] = {}  # node: the name it was locked under
        self._doubtful: set[str] = set()

    @property
    def name(self) -> str:
        """What stands in the locks that are taken now."""
        return f"{self._family}{self._session.epoch}"

    def has(self, node: str) -> bool:
        """Whether this session has locked a node."""
        return self._held.get(node) == self.name

    def take(self, nodes: Sequence[str], versions: Mapping[str, int]) -> Taken:
        """Lock these nodes, if possible at once and only if they have the versions named."""
        name = self.name
        with self._mutex:
            wanted = [node for node in nodes if node not in self._doubtful]
        try:
            made, is_checked = self._make(wanted, name.encode(), versions)
        except PenstockError:
            self.drop(wanted)
            raise
        if name != self.name:  # the session was lost meanwhile: nobody knows whose they are
            self.drop(wanted)
            return Taken(name, [], is_checked)
        with self._mutex:
            self._held.update(dict.fromkeys(made, name))
        return Taken(name, made, is_checked)

    def _make(
        self, nodes: Sequence[str], data: bytes, versions: Mapping[str, int]
    ) -> tuple[list[str], bool]:
        """Those that could be locked: all at once if nobody else wants them, else one by one."""
        if len(nodes) <= AT_ONCE_MAX and nodes:
            checks = [Check(_status(n), versions[n]) for n in nodes if n in versions]
            locks = [Create(_lock(node), data, ephemeral=True) for node in nodes]
            with contextlib.suppress(Refused):
                self._session.multi([*checks, *locks])
                return list(nodes), True
        found = self._session.get_many([_lock(node) for node in nodes])
        free = [node for node, lock in zip(nodes, found, strict=True) if lock is None]
        made = self._session.create_ephemerals([_lock(node) for node in free], data)
        return [node for node, is_made in zip(free, made, strict=True) if is_made], False

    def drop(self, nodes: Sequence[str]) -> None:
        """Give up locks on nodes that may be ours, or may not."""
        with self._mutex:
            self._doubtful.update(nodes)
            for node in nodes:
                self._held.pop(node, None)

    def forget(self, node: str) -> None:
        """The lock of a node went with a change."""
        with self._mutex:
            self._held.pop(node, None)

    def still_has(self, nodes: Sequence[str]) -> None:
        """Look whether these nodes, changes of which were refused, are locked by us at all."""
        found = self._session.get_many([_lock(node) for node in nodes])
        for node, lock in zip(nodes, found, strict=True):
            if lock is None or lock[0].decode() != self.name:
                self.forget(node)

    def free(self, items: Sequence[Held]) -> None:
        """Give up locks, now or, if the connection is broken, as soon as it is back.

        A change by hand takes a lock away, and another session may have it by now; but then the
        status has another version.
        """
        ours = [item for item in items if self.has(item.node)]
        for start in range(0, len(ours), AT_ONCE_MAX):
            part = ours[start : start + AT_ONCE_MAX]
            [outcome] = self._session.multi_many([[op for item in part for op in _freeing(item)]])
            if isinstance(outcome, PenstockError):
                self.drop([item.node for item in part])
            else:
                for item in part:
                    self.forget(item.node)
        self.free_doubtful()

    def free_doubtful(self) -> None:
        """Give up locks that nobody here works under, if they are ours at all."""
        with self._mutex:
            nodes = list(self._doubtful)
        if not nodes:
            return
        with contextlib.suppress(PenstockError):
            found = self._session.get_many([_lock(node) for node in nodes])
            ours = [
                node
                for node, lock in zip(nodes, found, strict=True)
                if lock is not None and lock[0].startswith(self._family.encode())
            ]
            outcomes = self._session.multi_many([Delete(_lock(node))] for node in ours)
            pairs = zip(ours, outcomes, strict=True)
            left = {n for n, o in pairs if isinstance(o, Unavailable)}
            with self._mutex:
                self._doubtful -= set(nodes) - left


def _lock(node: str) -> str:
    return f"{node}/lock"


def _status(node: str) -> str:
    return f"{node}/status"


def _freeing(item: Held) -> list[Op]:
    return [Check(_status(item.node), item.version), Delete(_lock(item.node))]

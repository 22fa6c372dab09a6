"""The locks of one session on ZooKeeper: ephemeral nodes that carry the session's name."""

import contextlib
import threading
from collections.abc import Sequence

from msgspec import Struct

from penstock import ids
from penstock.errors import PenstockError
from penstock.zk import Check, Delete, Refused, Session


class Held(Struct, frozen=True):
    """A node that is locked, and the version that its status had when that was last known."""

    node: str
    version: int


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

    def take(self, nodes: Sequence[str]) -> list[bool]:
        """Lock these nodes; which ones are ours now."""
        name = self.name
        with self._mutex:
            wanted = [node for node in nodes if node not in self._doubtful]
        try:
            made = self._session.create_ephemerals([_lock(n) for n in wanted], name.encode())
        except PenstockError:
            self._doubt(wanted)
            raise
        taken = {node for node, is_made in zip(wanted, made, strict=True) if is_made}
        if name != self.name:  # the session was lost meanwhile: nobody knows whose they are
            self._doubt(wanted)
            taken = set()
        with self._mutex:
            self._held.update(dict.fromkeys(taken, name))
        return [node in taken for node in nodes]

    def forget(self, node: str) -> None:
        """The lock of a node went with a change."""
        with self._mutex:
            self._held.pop(node, None)

    def free(self, items: Sequence[Held]) -> None:
        """Give up locks, now or, if the connection is broken, as soon as it is back.

        A change by hand takes a lock away, and another session may have it by now; but then the
        status has another version.
        """
        ours = [item for item in items if self.has(item.node)]
        outcomes = self._session.multi_many(
            [Check(f"{item.node}/status", item.version), Delete(_lock(item.node))] for item in ours
        )
        with self._mutex:
            for item, outcome in zip(ours, outcomes, strict=True):
                self._held.pop(item.node, None)
                if isinstance(outcome, PenstockError):
                    self._doubtful.add(item.node)
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
            left = {n for n, o in pairs if isinstance(o, PenstockError) and not _refused(o)}
            with self._mutex:
                self._doubtful -= set(nodes) - left

    def _doubt(self, nodes: Sequence[str]) -> None:
        with self._mutex:
            self._doubtful.update(nodes)


def _lock(node: str) -> str:
    return f"{node}/lock"


def _refused(outcome: PenstockError) -> bool:
    return isinstance(outcome, Refused)

"""A ZooKeeper session, for all threads of a process.

A broken connection suspends the session. When the session is lost, ZooKeeper deletes its ephemeral
nodes and so every lock, and the epoch grows.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Self

from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, NotFound, PenstockError, Unavailable
from penstock.zookeeper.address import Address
from penstock.zookeeper.connection import Connection
from penstock.zookeeper.operations import (
    Create,
    Delete,
    ErrorKind,
    Op,
    OutcomeUnknown,
    Result,
    TransactionRefused,
)

SEQUENCES_AT_ONCE: Final = 200


class ZooKeeperSession:
    """Reads, transactions and locks below the node of its address.

    When the connection breaks, reads are repeated for a while, then raise `Unavailable`. Writes are
    never repeated: they raise `OutcomeUnknown`, and the caller has to check the nodes.
    """

    def __init__(self, address: Address, connection: Connection) -> None:
        self.address = address
        self._connection = connection

    @classmethod
    def open(cls, url: str, *, session_seconds: float = 10) -> Self:
        """Connect, and create the node that the URL names.

        The locks of a process that died stay for `session_seconds`.
        """
        address = Address.parse(url)
        session = cls(address, Connection.open(address, session_seconds))
        try:
            session._connection.make_chroot()
        except BaseException:
            session.close()
            raise
        return session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; its locks are released at once."""
        self._connection.close()

    @property
    def epoch(self) -> int:
        """The number of the current session; locks of an earlier epoch are lost."""
        return self._connection.epoch

    def require(self, epoch: int) -> None:
        """Raise Conflict if the locks of this epoch are lost."""
        if epoch != self.epoch:
            raise Conflict(
                f"the ZooKeeper session was lost; the locks of epoch {epoch} are gone and this is "
                f"epoch {self.epoch}, take them again"
            )

    @property
    def is_suspended(self) -> bool:
        """Whether there is no connection now; the session may continue after it."""
        return not self._connection.wait(0)

    def wait_connected(self, seconds: float) -> bool:
        """Wait for the connection; return whether there is one."""
        return self._connection.wait(seconds)

    def multi(self, ops: Sequence[Op]) -> list[Result]:
        """Do all operations, or raise `TransactionRefused` and do none."""
        [outcome] = self.multi_many([ops])
        return _succeeded(outcome)

    def multi_many(
        self, transactions: Iterable[Sequence[Op]]
    ) -> list[list[Result] | PenstockError]:
        """Send separate transactions in this order, without waiting for each.

        After an `OutcomeUnknown` no more are sent; the rest are `Unavailable`.
        """
        return self._connection.transact(transactions)

    def create_sequence(self, prefix: str, data: bytes = b"") -> str:
        """Create a node named by this prefix and ten digits that no other child ever had."""
        _check_prefix(prefix)
        [path] = self.multi([Create(prefix, data, sequence=True)])
        return str(path)

    def create_sequences(self, prefix: str, count: int) -> list[str]:
        """Create several such nodes, ascending; after an error some of them may exist."""
        _check_prefix(prefix)
        ops = [Create(prefix, sequence=True)] * count
        starts = range(0, count, SEQUENCES_AT_ONCE)
        parts = self.multi_many(ops[start : start + SEQUENCES_AT_ONCE] for start in starts)
        return [str(path) for part in parts for path in _succeeded(part)]

    def create_ephemeral(self, path: str, data: bytes) -> bool:
        """Create an ephemeral node; False if it exists or its parent is missing."""
        [is_made] = self.create_ephemerals([path], data)
        return is_made

    def create_ephemerals(self, paths: Sequence[str], data: bytes) -> list[bool]:
        """Create several ephemeral nodes; return which were created.

        If the connection breaks, a node counts as created if it exists, belongs to this session and
        has this data. So the data must differ between the claims of one process.
        """
        outcomes = self.multi_many([Create(path, data, ephemeral=True)] for path in paths)
        open_paths = [
            path
            for path, outcome in zip(paths, outcomes, strict=True)
            if isinstance(outcome, Unavailable)
        ]
        ours = self._ours(open_paths, data)
        return [
            path in ours if isinstance(outcome, Unavailable) else _is_done(outcome)
            for path, outcome in zip(paths, outcomes, strict=True)
        ]

    def delete(self, path: str) -> bool:
        """Delete a node without children; False if it does not exist."""
        [outcome] = self.multi_many([[Delete(path)]])
        if isinstance(outcome, TransactionRefused) and outcome.kind == ErrorKind.NO_NODE:
            return False
        _succeeded(outcome)
        return True

    def get(self, path: str) -> tuple[bytes, int] | None:
        """Return the data and version of a node, or None."""
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        """Return the data and version of each node, or None."""
        nodes = self._connection.read(paths)
        return [None if node is None else (node.data, node.version) for node in nodes]

    def children_counts(self, paths: Sequence[str]) -> list[int]:
        """Count the children of each node; a missing node has none."""
        nodes = self._connection.read(paths)
        return [0 if node is None else node.children for node in nodes]

    def children_many(self, paths: Sequence[str]) -> list[list[str]]:
        """List the children of each node, in no order."""
        return [names or [] for names in self._connection.children(paths)]

    def identity(self, path: str) -> str:
        """Return a text that identifies this node among all nodes that ever had this path."""
        [node] = self._connection.read([path])
        if node is None:
            raise NotFound(
                f"{path} does not exist any more: the queue was deleted; restart this process"
            )
        return "{:x}-{:x}".format(*node.born)

    def made_at(self, paths: Sequence[str]) -> list[Micros | None]:
        """Return the creation time of each node by ZooKeeper's clock, or None."""
        nodes = self._connection.read(paths)
        return [None if node is None else node.born[1] * 1000 for node in nodes]

    def created(self, path: str) -> int:
        """Count the children that a node ever had."""
        [node] = self._connection.read([path])
        return 0 if node is None else node.created

    def exists(self, path: str) -> bool:
        return self._connection.children_count(path) is not None

    def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        """List a node's children, in no order; a missing node has none.

        `watch` is called once: when the children changed, or when the connection broke and a change
        may be missed. It runs in a thread of kazoo and may only set a flag or an event.
        """
        while True:
            [names] = self._connection.children([path], watch)
            if names is not None:
                return names
            # A missing node needs another kind of watch, for its creation.
            if watch is None or self._connection.children_count(path, watch) is None:
                return []

    def children_count(self, path: str) -> int:
        """Count a node's children without listing them."""
        return self._connection.children_count(path) or 0

    def sync(self) -> None:
        """Make later reads see every write that ZooKeeper accepted before this call."""
        self._connection.sync()

    def ensure(self, path: str) -> None:
        """Create a node and its parents where they are missing."""
        while not self.exists(path):
            if path == "/":
                self._connection.make_chroot()
                continue
            self.ensure(path.rpartition("/")[0] or "/")
            self._connection.make(path)

    def delete_tree(self, path: str) -> None:
        """Delete a node and everything below it, also nodes created meanwhile."""
        while self.exists(path):
            levels = [[path]]
            while levels[-1]:
                listed = self._connection.children(levels[-1])
                pairs = zip(levels[-1], listed, strict=True)
                levels.append(
                    [_below(parent, name) for parent, names in pairs for name in names or ()]
                )
            self._connection.remove([node for level in reversed(levels) for node in level])

    def _ours(self, paths: Sequence[str], data: bytes) -> set[str]:
        """Find the nodes of this session among paths whose creation was not answered."""
        if not paths:
            return set()
        try:
            self.sync()
            nodes = self._connection.read(paths)
            owner = self._connection.session_id
        except Unavailable as error:
            raise OutcomeUnknown(
                f"which of {len(paths)} locks were acquired is unknown: {error}"
            ) from error
        pairs = zip(paths, nodes, strict=True)
        return {path for path, node in pairs if node and node.owner == owner and node.data == data}


def _succeeded(outcome: list[Result] | PenstockError) -> list[Result]:
    if isinstance(outcome, PenstockError):
        raise outcome
    return outcome


def _is_done(outcome: list[Result] | PenstockError) -> bool:
    if isinstance(outcome, TransactionRefused):
        return False
    _succeeded(outcome)
    return True


def _below(parent: str, name: str) -> str:
    return f"/{name}" if parent == "/" else f"{parent}/{name}"


def _check_prefix(prefix: str) -> None:
    if prefix.endswith("/"):
        raise Invalid(f"{prefix} cannot begin a numbered node; add letters: {prefix}id")

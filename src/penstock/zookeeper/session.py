"""One session with ZooKeeper, for all threads of a process.

A break of the connection suspends it: pause, then go on. When the session is lost, its ephemeral
nodes are gone, and with them every lock: the epoch grows.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Self

from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, NotFound, PenstockError, Unavailable
from penstock.zookeeper.address import Address
from penstock.zookeeper.connection import Connection
from penstock.zookeeper.operations import Create, Delete, ErrorKind, Op, Refused, Result, Unknown

SEQUENCES_AT_ONCE: Final = 200


class Session:
    """Reads, transactions and locks below the node that its address names.

    Reads are repeated for a while when the connection breaks, then raise `Unavailable`. Writes
    are never repeated: they raise `Unknown`, which leaves it to the caller to look.
    """

    def __init__(self, address: Address, connection: Connection) -> None:
        self.address = address
        self._connection = connection

    @classmethod
    def open(cls, url: str, *, session_seconds: float = 10) -> Self:
        """Connect, and make the node that the URL names.

        `session_seconds` is how long the locks of a process that died stay.
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
        """End the session; its locks go at once."""
        self._connection.close()

    @property
    def epoch(self) -> int:
        """Which session this is: locks that were taken in an earlier epoch are gone."""
        return self._connection.epoch

    def require(self, epoch: int) -> None:
        """Refuse to go on under locks of an earlier epoch."""
        if epoch != self.epoch:
            raise Conflict(
                f"the ZooKeeper session was lost; the locks of epoch {epoch} are gone and this is "
                f"epoch {self.epoch}, take them again"
            )

    @property
    def is_suspended(self) -> bool:
        """Whether there is no connection just now: the session goes on after it, or is lost."""
        return not self._connection.wait(0)

    def wait_connected(self, seconds: float) -> bool:
        """Wait for the connection; whether it is there."""
        return self._connection.wait(seconds)

    def multi(self, ops: Sequence[Op]) -> list[Result]:
        """Do all of it, or raise `Refused` and do nothing."""
        [outcome] = self.multi_many([ops])
        return _succeeded(outcome)

    def multi_many(
        self, transactions: Iterable[Sequence[Op]]
    ) -> list[list[Result] | PenstockError]:
        """Do many transactions, each by itself, in this order and without waiting between them.

        After one that is `Unknown` no more are sent; the rest is `Unavailable`.
        """
        return self._connection.transact(transactions)

    def create_sequence(self, prefix: str, data: bytes = b"") -> str:
        """Make a node named by this prefix and ten digits that no other child here ever had."""
        _check_prefix(prefix)
        [path] = self.multi([Create(prefix, data, sequence=True)])
        return str(path)

    def create_sequences(self, prefix: str, count: int) -> list[str]:
        """Make many such nodes, ascending; after an error some of them may be there."""
        _check_prefix(prefix)
        ops = [Create(prefix, sequence=True)] * count
        starts = range(0, count, SEQUENCES_AT_ONCE)
        parts = self.multi_many(ops[start : start + SEQUENCES_AT_ONCE] for start in starts)
        return [str(path) for part in parts for path in _succeeded(part)]

    def create_ephemeral(self, path: str, data: bytes) -> bool:
        """Make a node that goes with this session; False if it is there, or its parent is not."""
        [is_made] = self.create_ephemerals([path], data)
        return is_made

    def create_ephemerals(self, paths: Sequence[str], data: bytes) -> list[bool]:
        """Make many such nodes; which ones were made.

        If the connection breaks, a node counts as made if it is there, of this session and with
        this data: let the data differ between those who lock in one process.
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
        """Remove a node that has no children; False if it is not there."""
        [outcome] = self.multi_many([[Delete(path)]])
        if isinstance(outcome, Refused) and outcome.kind == ErrorKind.NO_NODE:
            return False
        _succeeded(outcome)
        return True

    def get(self, path: str) -> tuple[bytes, int] | None:
        """The data and the version of a node, if it is there."""
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        """The data and the version of each node that is there."""
        nodes = self._connection.read(paths)
        return [None if node is None else (node.data, node.version) for node in nodes]

    def children_counts(self, paths: Sequence[str]) -> list[int]:
        """How many children each node has; one that is not there has none."""
        nodes = self._connection.read(paths)
        return [0 if node is None else node.children for node in nodes]

    def children_many(self, paths: Sequence[str]) -> list[list[str]]:
        """The names of the children of each node, in no order."""
        return [names or [] for names in self._connection.children(paths)]

    def identity(self, path: str) -> str:
        """What tells a node from any other that is, or was, at a path like this anywhere."""
        [node] = self._connection.read([path])
        if node is None:
            raise NotFound(f"{path} is not there any more: the queue was deleted; start anew")
        return "{:x}-{:x}".format(*node.born)

    def made_at(self, paths: Sequence[str]) -> list[Micros | None]:
        """When each node that is there was made, by the clock of ZooKeeper."""
        nodes = self._connection.read(paths)
        return [None if node is None else node.born[1] * 1000 for node in nodes]

    def created(self, path: str) -> int:
        """How many children a node ever had."""
        [node] = self._connection.read([path])
        return 0 if node is None else node.created

    def exists(self, path: str) -> bool:
        """Whether a node is there."""
        return self._connection.children_count(path) is not None

    def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        """The names of a node's children, in no order; a node that is not there has none.

        `watch` is called once: when they have changed, or when the connection broke and a change
        may go unseen. It runs in a thread of kazoo's, and may only set a flag or an event.
        """
        while True:
            [names] = self._connection.children([path], watch)
            if names is not None:
                return names
            # A node that is not there is watched in another way, so that its coming is seen.
            if watch is None or self._connection.children_count(path, watch) is None:
                return []

    def children_count(self, path: str) -> int:
        """How many children a node has, without listing them."""
        return self._connection.children_count(path) or 0

    def sync(self) -> None:
        """Let what is read next be as new as anything that ZooKeeper accepted before this."""
        self._connection.sync()

    def ensure(self, path: str) -> None:
        """Make a node, and those above it, unless they are there."""
        while not self.exists(path):
            if path == "/":
                self._connection.make_chroot()
                continue
            self.ensure(path.rpartition("/")[0] or "/")
            self._connection.make(path)

    def delete_tree(self, path: str) -> None:
        """Remove a node and everything below it, also what is made there meanwhile."""
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
        """Which of these paths, whose making nobody answered, are nodes of this session."""
        if not paths:
            return set()
        try:
            self.sync()
            nodes = self._connection.read(paths)
            owner = self._connection.session_id
        except Unavailable as error:
            raise Unknown(
                f"which of {len(paths)} locks were taken is not known: {error}"
            ) from error
        pairs = zip(paths, nodes, strict=True)
        return {path for path, node in pairs if node and node.owner == owner and node.data == data}


def _succeeded(outcome: list[Result] | PenstockError) -> list[Result]:
    if isinstance(outcome, PenstockError):
        raise outcome
    return outcome


def _is_done(outcome: list[Result] | PenstockError) -> bool:
    if isinstance(outcome, Refused):
        return False
    _succeeded(outcome)
    return True


def _below(parent: str, name: str) -> str:
    return f"/{name}" if parent == "/" else f"{parent}/{name}"


def _check_prefix(prefix: str) -> None:
    if prefix.endswith("/"):
        raise Invalid(f"{prefix} cannot begin a numbered node; add letters: {prefix}id")

"""A typed layer over kazoo, with our errors; kazoo's recipes are not used.

Reads are repeated when the connection breaks. Transactions are not: their outcome is unknown then.
"""

import contextlib
import dataclasses
import functools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Self, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    RequestTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL

from penstock.errors import Forbidden, Invalid, PenstockError, Unavailable
from penstock.zookeeper.address import Address
from penstock.zookeeper.operations import (
    Check,
    Create,
    Delete,
    ErrorKind,
    Op,
    OutcomeUnknown,
    ReadMany,
    ReadNode,
    Result,
    Set,
    TransactionRefused,
)

WAIT_SECONDS_MAX: Final = 10.0  # for a connection, or for the answer to a read
CLOSE_SECONDS_MAX: Final = 2.0  # for the server to end the session; kazoo waits 10 s and more
TRIES_MAX: Final = 5  # of a read whose connection breaks
WINDOW: Final = 64  # requests of one caller in flight
READ_AT_ONCE: Final = 100  # nodes in one request
# ZooKeeper closes the connection on a larger request (jute.maxbuffer), for all waiting callers.
REQUEST_BYTES_MAX: Final = 1_000_000
OP_BYTES_MAX: Final = 80  # of an operation, besides its path and data

Q = TypeVar("Q", str, list[str])

_log = logging.getLogger(__name__)

_BROKEN: Final = (
    ConnectionLoss,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
_ABSENT: Final = (NoNodeError, NodeExistsError, NotEmptyError)
_KINDS: Final = {
    NodeExistsError: ErrorKind.NODE_EXISTS,
    NoNodeError: ErrorKind.NO_NODE,
    BadVersionError: ErrorKind.BAD_VERSION,
    NotEmptyError: ErrorKind.NOT_EMPTY,
}


@dataclasses.dataclass(frozen=True)
class _Watch:
    """A watch that keeps exceptions out of kazoo's thread; kazoo stores equal watches once."""

    callback: Callable[[], None]

    def __call__(self, _event: object) -> None:
        try:
            self.callback()
        except Exception:
            _log.exception("a watch on ZooKeeper failed")


class Connection:
    """One connection of one session, for all threads of a process. Paths start at the chroot."""

    def __init__(self, address: Address, session_seconds: float) -> None:
        self._address = address
        has_account = address.user is not None
        account = ("digest", f"{address.user}:{address.password}")
        # kazoo divides the session's time among the hosts, to connect. A server that is just
        # starting may accept and not answer; with each host listed several times, kazoo tries it
        # again in time.
        tries = min(4, max(1, int(session_seconds // 2)))
        self._client: Any = KazooClient(
            hosts=",".join(address.hosts * max(1, tries // len(address.hosts))),
            timeout=session_seconds,
            # By default kazoo waits up to an hour between two tries to connect.
            connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 0.5},
            auth_data=[account] if has_account else None,
            default_acl=CREATOR_ALL_ACL if has_account else None,
        )
        self.epoch = 1
        self._is_closed = False
        self._is_broken = False
        self._client.add_listener(self._state_changed)
        self._connected: Any = self._client.start_async()

    @classmethod
    def open(cls, address: Address, session_seconds: float) -> Self:
        """Connect, or raise Unavailable."""
        connection = cls(address, session_seconds)
        try:
            connection.require()
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """End the session at once; callers that wait for an answer get OutcomeUnknown."""
        self._is_closed = True
        closing = threading.Thread(target=self._close, name="zookeeper-closing", daemon=True)
        closing.start()
        # A server that hangs ends the session later, by its timeout.
        closing.join(CLOSE_SECONDS_MAX)

    def _close(self) -> None:
        with contextlib.suppress(KazooException):
            self._client.stop()
            self._client.close()

    def wait(self, seconds: float) -> bool:
        """Wait for a connection; return whether there is one."""
        return bool(self._connected.wait(seconds))

    def require(self) -> None:
        """Wait for a connection; raise Unavailable after WAIT_SECONDS_MAX."""
        if self._is_closed:
            raise Unavailable(f"the session with {self._address} was closed; open another one")
        if not self.wait(WAIT_SECONDS_MAX):
            raise Unavailable(
                f"{self._address} cannot be reached, and nothing was sent; check that ZooKeeper "
                "runs there, then try again"
            )

    def transact(self, transactions: Iterable[Sequence[Op]]) -> list[list[Result] | PenstockError]:
        """Send transactions in this order, several in flight, and none after an OutcomeUnknown."""
        waiting = [tuple(ops) for ops in transactions]
        for ops in waiting:
            self._check_size(ops)
        ended: list[list[Result] | PenstockError] = []
        sent: deque[tuple[tuple[Op, ...], Any]] = deque()
        unsent = Unavailable(
            f"the connection to {self._address} broke, and this change was not sent; try it again"
        )
        for ops in waiting:
            while sent and (len(sent) == WINDOW or not self._connected.is_set()):
                ended.append(self._outcome(*sent.popleft()))
            if any(isinstance(outcome, OutcomeUnknown) for outcome in ended[-WINDOW:]):
                break
            try:
                self.require()
            except Unavailable as error:
                unsent = error
                break
            sent.append((ops, self._send(ops)))
        ended += [self._outcome(*pair) for pair in sent]
        return ended + [unsent] * (len(waiting) - len(ended))

    def read(self, paths: Sequence[str]) -> list[ReadNode | None]:
        """Read the node at each path."""
        placed = self._placed(paths)
        parts = [placed[n : n + READ_AT_ONCE] for n in range(0, len(placed), READ_AT_ONCE)]
        nodes: list[ReadNode | None] = []
        for part, answer in zip(parts, self._ask(self._read_async, parts), strict=True):
            for path, node in zip(part, answer, strict=True):
                if isinstance(node, KazooException):
                    raise self._refusal(node, path)
                nodes.append(node)
        return nodes

    @property
    def session_id(self) -> int | None:
        """The owner of this session's ephemeral nodes."""
        return self._client.client_id[0] if self._client.client_id else None

    def children(
        self, paths: Sequence[str], watch: Callable[[], None] | None = None
    ) -> list[list[str] | None]:
        """List the children of each path; `watch` is called once when they change."""
        hint = None if watch is None else _Watch(watch)
        ask = functools.partial(self._client.get_children_async, watch=hint)
        return self._ask(ask, self._placed(paths))

    def children_count(self, path: str, watch: Callable[[], None] | None = None) -> int | None:
        """Count the children; `watch` is called once when the node itself is created or deleted."""
        hint = None if watch is None else _Watch(watch)
        ask = functools.partial(self._client.exists_async, watch=hint)
        [stat] = self._ask(ask, self._placed([path]))
        return None if stat is None else int(stat.numChildren)

    def sync(self) -> None:
        """Make later reads see every write that ZooKeeper accepted before this call."""
        self._ask(self._client.sync_async, self._placed(["/"]))

    def make(self, path: str) -> None:
        """Create an empty node unless it exists or its parent is missing."""
        self._ask(self._client.create_async, self._placed([path]))

    def remove(self, paths: Sequence[str]) -> None:
        """Delete the nodes that exist and have no children, in this order."""
        self._ask(self._client.delete_async, self._placed(paths))

    def make_chroot(self) -> None:
        """Create the connection's root node and its parents."""
        names = self._address.chroot.split("/")
        for depth in range(2, len(names) + 1):
            self._ask(self._client.create_async, ["/".join(names[:depth])])

    def _placed(self, paths: Iterable[str]) -> list[str]:
        """Prefix the paths with the chroot."""
        chroot = self._address.chroot
        return [(chroot or "/") if path == "/" else chroot + path for path in paths]

    def _state_changed(self, state: str) -> None:
        """Note the state only: a request from kazoo's own thread would wait for itself."""
        if state == KazooState.LOST:
            self.epoch += 1
        if self._is_closed:
            return
        if state == KazooState.CONNECTED:
            if self._is_broken:
                _log.info("%s answers again", self._address)
        elif state == KazooState.LOST:
            _log.warning("the session with %s is lost, and its locks with it", self._address)
        elif not self._is_broken:
            _log.warning("%s does not answer; the client keeps trying", self._address)
        self._is_broken = state != KazooState.CONNECTED

    def _send(self, ops: Sequence[Op]) -> Any:
        transaction = self._client.transaction()
        for op, path in zip(ops, self._placed(op.path for op in ops), strict=True):
            match op:
                case Create(_, data, ephemeral, sequence):
                    transaction.create(path, data, ephemeral=ephemeral, sequence=sequence)
                case Set(_, data, version):
                    transaction.set_data(path, data, version)
                case Delete(_, version):
                    transaction.delete(path, version)
                case Check(_, version):
                    transaction.check(path, version)
        return transaction.commit_async()

    def _outcome(self, ops: Sequence[Op], answer: Any) -> list[Result] | PenstockError:
        """Wait for the answer without a limit: a sent transaction cannot be cancelled.

        kazoo answers when it gives up the connection, unless the client is closed at that moment.
        """
        while True:
            try:
                results = answer.get(timeout=1)
            except KazooTimeoutError:
                if self._client.client_state != KeeperState.CLOSED:
                    continue
                return self._unknown()
            except _BROKEN:
                return self._unknown()
            except KazooException as error:
                return self._refusal(error, ops[0].path if ops else "nothing")
            break
        for index, (op, result) in enumerate(zip(ops, results, strict=True)):
            if type(result) in _KINDS:
                return TransactionRefused(index, op, _KINDS[type(result)])
            # The other operations of a failed transaction have one of these results.
            if isinstance(result, KazooException) and not isinstance(
                result, RolledBackError | RuntimeInconsistency
            ):
                return self._refusal(result, op.path)
        return [self._plain(op, result) for op, result in zip(ops, results, strict=True)]

    def _plain(self, op: Op, result: Any) -> Result:
        match op:
            case Create():
                return str(result).removeprefix(self._address.chroot)
            case Set():
                return int(result.version)
            case _:
                return None

    def _read_async(self, paths: Sequence[str]) -> Any:
        answer = self._client.handler.async_result()
        self._client._call(ReadMany(paths), answer)
        return answer

    def _ask(self, ask: Callable[[Q], Any], about: Sequence[Q]) -> list[Any]:
        """Request each path, or each part of the paths; repeat after a broken connection.

        The answer is None if the node does not exist.
        """
        answers: list[Any] = [None] * len(about)
        indexes: list[int] = list(range(len(about)))
        for _ in range(TRIES_MAX):
            indexes = self._ask_once(ask, about, indexes, answers)
            if not indexes:
                return answers
        raise Unavailable(
            f"the connection to {self._address} broke {TRIES_MAX} times while "
            f"{_first(about[indexes[0]])} was read; check ZooKeeper and the network, "
            "then try again"
        )

    def _ask_once(
        self, ask: Callable[[Q], Any], about: Sequence[Q], which: list[int], answers: list[Any]
    ) -> list[int]:
        """Fill in the answers; return the indexes that have to be repeated."""
        broken: list[int] = []
        sent: deque[tuple[int, Any]] = deque()
        coming = iter(which)
        while True:
            for index in coming:
                self.require()
                sent.append((index, ask(about[index])))
                if len(sent) == WINDOW:
                    break
            if not sent:
                return broken
            index, answer = sent.popleft()
            try:
                answers[index] = answer.get(timeout=WAIT_SECONDS_MAX)
            except _ABSENT:
                pass
            except _BROKEN:
                broken.append(index)
            except KazooTimeoutError:
                raise Unavailable(
                    f"{self._address} did not answer for {WAIT_SECONDS_MAX:g} s to a read of "
                    f"{_first(about[index])}; check ZooKeeper, then try again"
                ) from None
            except KazooException as error:
                raise self._refusal(error, _first(about[index])) from error

    def _check_size(self, ops: Sequence[Op]) -> None:
        size = 0
        for op in ops:
            data = op.data if isinstance(op, Create | Set) else b""
            size += OP_BYTES_MAX + len((self._address.chroot + op.path).encode()) + len(data)
        if size > REQUEST_BYTES_MAX:
            raise Invalid(
                f"a change of {len(ops)} nodes, the first being {ops[0].path}, has {size} bytes, "
                f"but ZooKeeper takes {REQUEST_BYTES_MAX} at once; make it smaller"
            )

    def _unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"the connection to {self._address} broke before it answered, so the change may have "
            "been made or not; look before you make it again"
        )

    def _refusal(self, error: KazooException, path: str) -> PenstockError:
        if isinstance(error, NoAuthError | AuthFailedError):
            return Forbidden(
                f"{self._address} does not allow this at {path}; name another user in the URL, or "
                "change the access list of that node"
            )
        return Invalid(f"{self._address} refuses this at {path}: {type(error).__name__} {error}")


def _first(about: str | Sequence[str]) -> str:
    """Return the path to name in a message."""
    return about if isinstance(about, str) else about[0]

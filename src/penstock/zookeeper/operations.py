"""Operations on nodes, and a request that reads many nodes (ZooKeeper 3.6; kazoo has none)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from struct import Struct as Layout
from typing import Any, Final, NamedTuple, TypeAlias

from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError
from msgspec import Struct

from penstock.errors import Conflict, Unavailable

READ: Final = 4
ERROR: Final = -1

_INT = Layout(">i")
_HEADER = Layout(">i?i")  # operation, end flag, error
_STAT = Layout(">qqqqiiiqiiq")
_NOT_WATCHED = b"\0"
_END = _HEADER.pack(-1, True, -1)

Result: TypeAlias = str | int | None


class ReadNode(NamedTuple):
    """A node as it was read; `owner` is the session of an ephemeral node, else 0.

    `born` is the transaction that created it, and the time; `created` counts all children it ever
    had.
    """

    data: bytes
    version: int
    owner: int
    children: int
    born: tuple[int, int]
    created: int


class ReadMany:
    """A request that reads several paths; kazoo sends it and passes the answer to `deserialize`."""

    type: Final = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def serialize(self) -> bytearray:
        """Encode the request."""
        header = _HEADER.pack(READ, False, -1)
        request = bytearray()
        for path in self._paths:
            encoded = path.encode()
            request += header + _INT.pack(len(encoded)) + encoded + _NOT_WATCHED
        return request + _END

    def deserialize(self, answer: Any, offset: int) -> list[ReadNode | KazooException | None]:
        """Decode the node of each path: None if it does not exist, or the error."""
        nodes = list(_nodes(answer, offset))
        if len(nodes) != len(self._paths):
            raise ValueError(f"{len(self._paths)} nodes were requested, {len(nodes)} arrived")
        return nodes


def _nodes(answer: Any, offset: int) -> Iterator[ReadNode | KazooException | None]:
    while True:
        kind, is_end, _ = _HEADER.unpack_from(answer, offset)
        offset += _HEADER.size
        if is_end:
            return
        [number] = _INT.unpack_from(answer, offset)
        offset += _INT.size
        if kind == ERROR:
            yield None if number == NoNodeError.code else EXCEPTIONS[number]()
            continue
        length = max(number, 0)  # no data is written as -1
        data = bytes(answer[offset : offset + length])
        offset += length
        stat = _STAT.unpack_from(answer, offset)
        offset += _STAT.size
        # cversion counts created and deleted children; with numChildren this gives the created
        # ones.
        created = (stat[5] + stat[9]) // 2
        yield ReadNode(data, stat[4], stat[7], stat[9], (stat[0], stat[2]), created)


class Create(Struct, frozen=True):
    """Create a node; the result is its path.

    An ephemeral node is deleted with the session. The path of a sequence node gets ten digits that
    no other child of its parent ever had.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Set(Struct, frozen=True):
    """Write a node that still has this version (-1: any); the result is the new version."""

    path: str
    data: bytes
    version: int


class Delete(Struct, frozen=True):
    """Delete a node without children that still has this version (-1: any)."""

    path: str
    version: int = -1


class Check(Struct, frozen=True):
    """Require that a node still has this version (-1: any)."""

    path: str
    version: int


Op: TypeAlias = Create | Set | Delete | Check


class ErrorKind(StrEnum):
    """The reasons why ZooKeeper refuses a transaction."""

    NODE_EXISTS = "NODE_EXISTS"
    NO_NODE = "NO_NODE"
    BAD_VERSION = "BAD_VERSION"
    NOT_EMPTY = "NOT_EMPTY"


_WORDS = {
    ErrorKind.NODE_EXISTS: "it already exists",
    ErrorKind.NO_NODE: "it or its parent does not exist",
    ErrorKind.BAD_VERSION: "it was changed meanwhile",
    ErrorKind.NOT_EMPTY: "it has children",
}


class TransactionRefused(Conflict):
    """One operation does not match the nodes, so no operation of its transaction was done."""

    def __init__(self, index: int, op: Op, kind: ErrorKind) -> None:
        super().__init__(
            f"ZooKeeper refused to {type(op).__name__.lower()} {op.path}: {_WORDS[kind]}; nothing "
            "was changed, read it again"
        )
        self.index = index
        self.op = op
        self.kind = kind


class OutcomeUnknown(Unavailable):
    """The connection broke before the answer: all of the transaction was done, or nothing.

    The caller has to `sync` and read before it repeats the transaction.
    """

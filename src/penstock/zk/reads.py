"""One request that reads many nodes; ZooKeeper has it since 3.6, and kazoo has no call for it."""

from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import Any, Final, NamedTuple

from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError

READ: Final = 4
ERROR: Final = -1

_INT = Layout(">i")
_HEADER = Layout(">i?i")  # what it is, whether it is the end, the error
_STAT = Layout(">qqqqiiiqiiq")
_NOT_WATCHED = b"\0"
_END = _HEADER.pack(-1, True, -1)


class Node(NamedTuple):
    """A node as it was read; `owner` is the session of an ephemeral one, else 0.

    `born` is the transaction that made it, and when; `created` is how many children it ever had.
    """

    data: bytes
    version: int
    owner: int
    children: int
    born: tuple[int, int]
    created: int


class ReadMany:
    """Reads these paths at once; kazoo sends it and hands the answer to `deserialize`."""

    type: Final = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def serialize(self) -> bytearray:
        """The request as ZooKeeper takes it."""
        header = _HEADER.pack(READ, False, -1)
        request = bytearray()
        for path in self._paths:
            encoded = path.encode()
            request += header + _INT.pack(len(encoded)) + encoded + _NOT_WATCHED
        return request + _END

    def deserialize(self, answer: Any, offset: int) -> list[Node | KazooException | None]:
        """What is at each path: None where there is nothing, or why it may not be read."""
        nodes = list(_nodes(answer, offset))
        if len(nodes) != len(self._paths):
            raise ValueError(f"{len(self._paths)} nodes were asked for, {len(nodes)} came")
        return nodes


def _nodes(answer: Any, offset: int) -> Iterator[Node | KazooException | None]:
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
        # ZooKeeper tells children made and deleted together, and counts only those made.
        created = (stat[5] + stat[9]) // 2
        yield Node(data, stat[4], stat[7], stat[9], (stat[0], stat[2]), created)

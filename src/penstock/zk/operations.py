"""Changes as values: what one transaction consists of, and how it can end."""

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from penstock.errors import Conflict, Unavailable


class Create(Struct, frozen=True):
    """Make a node; its result is its path.

    An ephemeral node goes away with the session. A sequence node's path gets ten digits that
    no other child of its parent had.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Set(Struct, frozen=True):
    """Write a node that still has this version (-1: whatever it has); its result is the new one."""

    path: str
    data: bytes
    version: int


class Delete(Struct, frozen=True):
    """Remove a node without children that still has this version (-1: whatever it has)."""

    path: str
    version: int = -1


class Check(Struct, frozen=True):
    """Hold the others to a node that still has this version (-1: whatever it has)."""

    path: str
    version: int


Op: TypeAlias = Create | Set | Delete | Check
Result: TypeAlias = str | int | None


class ErrorKind(StrEnum):
    """Why a transaction was refused."""

    NODE_EXISTS = "NODE_EXISTS"
    NO_NODE = "NO_NODE"
    BAD_VERSION = "BAD_VERSION"
    NOT_EMPTY = "NOT_EMPTY"


_WORDS = {
    ErrorKind.NODE_EXISTS: "it is already there",
    ErrorKind.NO_NODE: "it, or its parent, is not there",
    ErrorKind.BAD_VERSION: "it was changed by somebody else",
    ErrorKind.NOT_EMPTY: "it has children",
}


class Refused(Conflict):
    """One operation does not fit what is there, and so nothing of its transaction was done."""

    def __init__(self, index: int, op: Op, kind: ErrorKind) -> None:
        super().__init__(
            f"ZooKeeper refused to {type(op).__name__.lower()} {op.path}: {_WORDS[kind]}; nothing "
            "was changed, read it again"
        )
        self.index = index
        self.op = op
        self.kind = kind


class Unknown(Unavailable):
    """The connection broke before the answer came: all of it was done, or nothing.

    Whoever asked has to look (`Session.sync`, then read) before deciding to ask again.
    """

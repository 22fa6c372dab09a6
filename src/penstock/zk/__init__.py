"""The ZooKeeper session: what losing it means, and changes that are done whole or not at all."""

from penstock.zk.address import Address
from penstock.zk.operations import (
    Check,
    Create,
    Delete,
    ErrorKind,
    Op,
    Refused,
    Result,
    Set,
    Unknown,
)
from penstock.zk.session import Session

__all__ = [
    "Address",
    "Check",
    "Create",
    "Delete",
    "ErrorKind",
    "Op",
    "Refused",
    "Result",
    "Session",
    "Set",
    "Unknown",
]

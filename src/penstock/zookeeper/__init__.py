"""The ZooKeeper session: what losing it means, and changes that are done whole or not at all."""

from penstock.zookeeper.address import Address
from penstock.zookeeper.operations import (
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
from penstock.zookeeper.session import Session

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

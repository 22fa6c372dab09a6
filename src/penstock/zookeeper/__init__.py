"""ZooKeeper sessions: reads, atomic transactions and locks."""

from penstock.zookeeper.address import Address
from penstock.zookeeper.operations import (
    Check,
    Create,
    Delete,
    ErrorKind,
    Op,
    OutcomeUnknown,
    Result,
    Set,
    TransactionRefused,
)
from penstock.zookeeper.session import ZooKeeperSession

__all__ = [
    "Address",
    "Check",
    "Create",
    "Delete",
    "ErrorKind",
    "Op",
    "OutcomeUnknown",
    "Result",
    "Set",
    "TransactionRefused",
    "ZooKeeperSession",
]

"""Which tests run on one of the two databases only, chosen by their name; `--both` runs them all.

Doors do not know which database is behind them. Deposits know two kinds of queue, SQL and
ZooKeeper, and are seen on both; that the two databases make the same of SQL is the contract
suites' matter.
"""

import re
from zlib import crc32

import pytest

_DATABASES = ("sqlite", "postgresql")
_DATABASE = re.compile(rf"(?<=[\[-])({'|'.join(_DATABASES)})(?=[\]-])")
# What promises to work on both is seen on both.
_ON_BOTH = ("test_marquez_python.py", "test_openlineage_python.py")


def keep_one(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of two variants of a test keep one."""
    names = {item.nodeid for item in items}
    dropped = [item for item in items if _is_dropped(item, names)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]


def _is_dropped(item: pytest.Item, names: set[str]) -> bool:
    named = _DATABASE.search(item.nodeid)
    if named is None or item.path.name in _ON_BOTH or not _stands_above(item, names):
        return False
    name = item.nodeid.partition("@")[0]  # a group that tests are kept in changes nothing
    chosen = _DATABASES[crc32(_DATABASE.sub("", name).encode()) % 2]
    return chosen != named[1] and _DATABASE.sub(chosen, item.nodeid) in names


def _stands_above(item: pytest.Item, names: set[str]) -> bool:
    """Whether a test is about what stands above the database."""
    folder = item.path.parent.name
    is_of_deposits = folder == "acceptance" and "site" in getattr(item, "fixturenames", ())
    return folder == "doors" or (
        is_of_deposits and _DATABASE.sub("zookeeper", item.nodeid) in names
    )

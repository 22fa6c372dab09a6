"""Doors do not know which database is behind them: each test gets one of the two, by its name."""

import re
from zlib import crc32

import pytest

_DATABASES = ("sqlite", "postgresql")
_DATABASE = re.compile(rf"(?<=[\[-])({'|'.join(_DATABASES)})(?=[\]-])")
# What promises to work on both is seen on both.
_ON_BOTH = ("test_marquez_python.py", "test_openlineage_python.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of two variants of a test keep one; `--both` keeps them all."""
    if config.getoption("both"):
        return
    names = {item.nodeid for item in items}
    dropped = [item for item in items if _is_dropped(item, names)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]


def _is_dropped(item: pytest.Item, names: set[str]) -> bool:
    named = _DATABASE.search(item.nodeid)
    if item.path.parent.name != "doors" or item.path.name in _ON_BOTH or named is None:
        return False
    chosen = _DATABASES[crc32(_DATABASE.sub("", item.nodeid).encode()) % 2]
    return chosen != named[1] and _DATABASE.sub(chosen, item.nodeid) in names

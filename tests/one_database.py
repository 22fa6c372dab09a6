"""Choose one database for each test above the database layer; `--both` runs all variants.

The contract suites run on both databases. Doors and acceptance tests run on one, chosen by the
test's name, so that half of them run on each. The marks `one_database` and `both_databases`
override this for a module or a test. Tests of the ingest queue also run on ZooKeeper.
"""

import re
from zlib import crc32

import pytest

_VARIANTS = (("sqlite", "postgresql"), ("sqlite and a folder", "postgresql and s3"))
_OTHER = {name: pair[1 - index] for pair in _VARIANTS for index, name in enumerate(pair)}
_VARIANT = re.compile(rf"(?<=[\[-])({'|'.join(_OTHER)})(?=[\]-])")
_ON_ONE = ("doors", "acceptance")


def keep_one(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect one of the two variants of a test."""
    names = {item.nodeid for item in items}
    dropped = {item for item in items if _is_dropped(item, names)}
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]


def _is_dropped(item: pytest.Item, names: set[str]) -> bool:
    variant = _VARIANT.search(item.nodeid)
    if variant is None or not _is_above_the_database(item):
        return False
    name = item.nodeid.partition("@")[0]  # xdist appends the group
    drops_postgresql = crc32(_VARIANT.sub("", name).encode()) % 2 == 0
    is_postgresql = variant[1].startswith("postgresql")
    other = item.nodeid.replace(variant[1], _OTHER[variant[1]])
    return drops_postgresql == is_postgresql and other in names


def _is_above_the_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("both_databases"):
        return False
    return item.path.parent.name in _ON_ONE or item.get_closest_marker("one_database") is not None

"""Tags: created on first use, and listed by the namespaces that use them."""

from collections.abc import Iterable

from penstock.catalog.rows import TagRow, TagUseRow
from penstock.catalog.unit_of_work import UnitOfWork


def use_tags(uow: UnitOfWork, namespace: str, names: Iterable[str]) -> None:
    """Create new tags, and record their use in a namespace."""
    for name in names:
        if uow.tags.get(name) is None:
            uow.tags.put(name, TagRow(name, None))
        uow.tag_uses.put((namespace, name), TagUseRow(namespace, name))

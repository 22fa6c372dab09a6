"""Tags: made when something first carries them, and known by the namespaces that use them."""

from collections.abc import Iterable

from penstock.catalog.rows import TagRow, TagUseRow
from penstock.catalog.unit_of_work import UnitOfWork


def use_tags(uow: UnitOfWork, namespace: str, names: Iterable[str]) -> None:
    """Make tags that are new, and note that something in a namespace carries them."""
    for name in names:
        if uow.tags.get(name) is None:
            uow.tags.put(name, TagRow(name, None))
        uow.tag_uses.put((namespace, name), TagUseRow(namespace, name))

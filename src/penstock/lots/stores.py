"""Object stores of this server: a folder is recognized by a mark in it, never by its path.

A folder whose disk is not mounted looks empty. So the database records the folders that are stores;
such a folder without its mark is unavailable (ADR 0014).
"""

from typing import ClassVar

from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.objects import Objects, mark_store
from penstock.objects.keys import local_folder
from penstock.store.write_queue import WriteQueue


class BeginStore(Write, frozen=True):
    """Record that a folder has the mark of a store."""

    exclusive: ClassVar[bool] = True  # it executes a statement itself

    url: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write the row."""
        uow.tx.execute("begin_store", url=self.url, now=now)


def open_store(catalog: WriteQueue, url: str, below: str = "") -> Objects:
    """Open a store of this server, or a folder below it; mark a new store."""
    folder = local_folder(url)
    if folder is not None:
        name = folder.absolute().as_uri()
        with catalog.read() as tx:
            is_known = tx.fetch_one("store_begun_at", url=name) is not None
        if not is_known:
            mark_store(url)
            catalog.submit(BeginStore(name)).result()
    return Objects.open(url, below=below, is_marked=True)

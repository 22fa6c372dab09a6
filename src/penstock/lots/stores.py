"""Object stores of our own: a folder that is one is known by a mark in it, and never by its path.

A folder whose disk is not mounted looks like one that is empty. So the database remembers which
folders were begun as stores; one of these without its mark is away (ADR 0014).
"""

from typing import ClassVar

from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.objects import Objects, mark_store
from penstock.objects.keys import local_folder
from penstock.store.write_queue import WriteQueue


class BeginStore(Write, frozen=True):
    """Note that a folder has the mark of a store from now on."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    url: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """One row."""
        uow.tx.execute("begin_store", url=self.url, now=now)


def open_store(catalog: WriteQueue, url: str, below: str = "") -> Objects:
    """A store of ours, or a folder below it; it is marked when it is first used."""
    folder = local_folder(url)
    if folder is not None:
        name = folder.absolute().as_uri()
        with catalog.read() as tx:
            is_known = tx.fetch_one("store_begun_at", url=name) is not None
        if not is_known:
            mark_store(url)
            catalog.submit(BeginStore(name)).result()
    return Objects.open(url, below=below, is_marked=True)

"""An invariant: a name, a sentence, and a function that yields violations."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from penstock.clock import Clock
from penstock.db import Database
from penstock.ingest.context import IngestContext
from penstock.objects import Objects

FOUND_MAX: Final = 1000  # violations of one invariant; a result with more is marked
PAGE: Final = 500
NO_ID: Final = "00000000-0000-0000-0000-000000000000"  # before every id


@dataclass(frozen=True)
class Grounds:
    """The system to check; `deep` reads every byte that a manifest or an inventory lists.

    A caller sets `stop` to abandon checks that take long.
    """

    database: Database
    objects: Callable[[], Objects]
    context: IngestContext
    clock: Clock
    deep: bool = False
    readers: int = 4  # objects read in parallel
    stop: threading.Event = field(default_factory=threading.Event)


Find = Callable[[Grounds], Iterator[str]]


@dataclass(frozen=True)
class Invariant:
    """A condition that always holds; `find` yields its violations, each a sentence."""

    name: str
    sentence: str
    find: Find


def by_statement(name: str, sentence: str, statement: str, words: str) -> Invariant:
    """Return an invariant that one statement checks; `words` describes one row."""

    def find(grounds: Grounds) -> Iterator[str]:
        with grounds.database.read() as tx:
            rows = tx.fetch(statement, most=FOUND_MAX)
        return (words.format(*row) for row in rows)

    return Invariant(name, sentence, find)

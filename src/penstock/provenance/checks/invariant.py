"""What an invariant is: a name, a sentence, and a function that gives what breaks it."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from penstock.clock import Clock
from penstock.db import Database
from penstock.ingest.context import IngestContext
from penstock.objects import Objects

FOUND_MAX: Final = 1000  # of one invariant; whoever has more is told that there are more
PAGE: Final = 500
NO_ID: Final = "00000000-0000-0000-0000-000000000000"  # before every id


@dataclass(frozen=True)
class Grounds:
    """What is looked at; `deep` is for every byte that a manifest or an inventory names.

    Whoever does not want to know any more sets `stop`: what takes long is then given up.
    """

    database: Database
    objects: Callable[[], Objects]
    context: IngestContext
    clock: Clock
    deep: bool = False
    readers: int = 4  # how many objects are read at once
    stop: threading.Event = field(default_factory=threading.Event)


Find = Callable[[Grounds], Iterator[str]]


@dataclass(frozen=True)
class Invariant:
    """Something that always holds; `find` names what breaks it, each in a sentence."""

    name: str
    sentence: str
    find: Find


def by_statement(name: str, sentence: str, statement: str, words: str) -> Invariant:
    """An invariant that one statement decides; `words` tell of one of its rows."""

    def find(grounds: Grounds) -> Iterator[str]:
        with grounds.database.read() as tx:
            rows = tx.fetch(statement, most=FOUND_MAX)
        return (words.format(*row) for row in rows)

    return Invariant(name, sentence, find)

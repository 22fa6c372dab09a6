"""Queued writes: the limits of a batch in entries and in bytes."""

from typing import NamedTuple

from penstock.store.write_queue import Inbox


class Entry(NamedTuple):
    size: int


def batches(*sizes: int, entries_max: int = 100, bytes_max: int = 10) -> list[list[int]]:
    """Return the sizes of the entries in each batch."""
    inbox: Inbox[Entry] = Inbox(100)
    for size in sizes:
        inbox.put(Entry(size))
    parts = []
    while len(inbox):
        parts.append([entry.size for entry in inbox.take(entries_max, bytes_max)])
    return parts


def test_small_entries_share_a_batch() -> None:
    assert batches(0, 0, 0) == [[0, 0, 0]]


def test_a_batch_has_at_most_the_requested_entries() -> None:
    assert batches(0, 0, 0, entries_max=2) == [[0, 0], [0]]


def test_a_batch_has_at_most_the_requested_bytes() -> None:
    assert batches(4, 6, 1, 9, 1) == [[4, 6], [1, 9], [1]]


def test_an_entry_over_the_limit_has_its_own_batch() -> None:
    assert batches(1, 40, 1) == [[1], [40], [1]]

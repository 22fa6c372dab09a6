"""A watcher in a process of its own, with a clock that advances; it reports each call."""

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from penstock.clock import Micros
from tests.contract.arrival_site import MINUTE, Fuse, Site, fused_watcher
from tests.contract.forking import FORKED


@contextmanager
def doomed_watcher(url: str, folder: Path, end: Micros) -> Iterator[Iterator[bytes]]:
    """Yield the reports of the watcher until it is killed."""
    told, telling = FORKED.Pipe(duplex=False)
    doomed = FORKED.Process(target=_watch, args=(url, folder, end, telling))
    doomed.start()
    telling.close()
    try:
        yield _all_of(told)
    finally:
        doomed.kill()
        doomed.join()
        told.close()


def _all_of(told: Connection) -> Iterator[bytes]:
    while True:
        try:
            yield told.recv_bytes()
        except EOFError:
            return


def _watch(url: str, folder: Path, end: Micros, telling: Connection) -> None:
    """Run a round at every five minutes of the day."""
    site = Site(url, folder)
    watcher = fused_watcher(site, Fuse(10**9, lambda: telling.send_bytes(b".")))
    while site.now < end:
        site.now += 5 * MINUTE
        watcher.go_round(site.now)
    site.close()

"""A watcher in a process of its own, for a clock that goes on by itself; it tells of each call."""

import sys
from pathlib import Path

from penstock.clock import Micros
from tests.contract.arrival_site import MINUTE, Fuse, Site, fused_watcher


def main(url: str, folder: Path, end: Micros) -> None:
    """Go round at every five minutes of the day to an end."""
    site = Site(url, folder)
    watcher = fused_watcher(site, Fuse(10**9, lambda: print(".", flush=True)))
    while site.now < end:
        site.now += 5 * MINUTE
        watcher.go_round(site.now)
    site.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

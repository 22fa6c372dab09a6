"""A deliverer in a process of its own, to be killed."""

import sys
import threading

from penstock.catalog.writes import open_write_queue
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.subscribers.delivery import Deliverer

LEASE_SECONDS = 0.5


def main(url: str) -> None:
    """Deliver until killed."""
    database = open_database(url)
    catalog = open_write_queue(
        database, clock=system_clock, batch_events_max=100, queue_length_max=1000
    )
    catalog.start()
    Deliverer(catalog, database, system_clock, lease_seconds=LEASE_SECONDS).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])

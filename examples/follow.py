"""Follow what happens to lots, and miss nothing while this program is not running.

    python examples/follow.py POSITION_FILE [COUNT]

The number of the last event that was handled is kept in a file; the next start goes on behind it.
A connection that is lost is made again by the client, and nothing is left out. An event may come
twice after a crash, just before its number was written: what you do with it should not mind.
"""

import sys
from pathlib import Path

from penstock import Client
from penstock.schema.subscribers import LotEvent


def handle(event: LotEvent) -> None:
    """Your own work."""
    maker = f"job {event.job.name}" if event.job else "outside"
    print(f"{event.id} {event.dataset.namespace}/{event.dataset.name} {event.lot} from {maker}")


def main() -> None:
    """Handle events, so many or for ever."""
    position = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else None
    after = int(position.read_text()) if position.exists() else 0
    with Client() as client:
        for number, event in enumerate(client.lot_events(after=after), start=1):
            handle(event)
            position.write_text(str(event.id))
            if number == count:
                return


if __name__ == "__main__":
    main()

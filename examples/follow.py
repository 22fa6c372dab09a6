"""Follow the events of lots, and miss none while this program is not running.

    python examples/follow.py POSITION_FILE [COUNT]

The program stores the id of the last handled event in a file and continues after it at the next
start. The client reconnects after a lost connection and skips no event. After a crash, an event
can arrive a second time, so make your handler idempotent.
"""

import sys
from pathlib import Path

from penstock import Client
from penstock.schema.subscribers import LotEvent


def handle(event: LotEvent) -> None:
    """Print the event. Replace this with your own code."""
    maker = f"job {event.job.name}" if event.job else "outside"
    print(f"{event.id} {event.dataset.namespace}/{event.dataset.name} {event.lot} from {maker}")


def main() -> None:
    """Handle COUNT events, or all events for ever."""
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

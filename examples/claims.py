"""A worker that claims one lot after the other with the client, and can be killed at any time.

    python examples/claims.py FOLDER

Each lot is a file of numbers in FOLDER. The output is a file with the suffix `.doubled`. You can
run any number of these workers at once: no lot is processed twice. Leaving the `with` block
completes the claim. An error fails it, and the lot is retried later. Ctrl-C releases the claim. A
lost claim, for example because the machine slept, publishes nothing.
"""

import sys
from pathlib import Path

from penstock import ClaimLost, Client


def double(folder: Path, lot: str) -> None:
    """Write each number of the lot, doubled."""
    numbers = [int(line) for line in (folder / lot).read_text().split()]
    (folder / f"{lot}.doubled").write_text("".join(f"{2 * number}\n" for number in numbers))


def main() -> None:
    """Register the files of the folder as lots and process all lots."""
    folder = Path(sys.argv[1])
    with Client() as client:
        # Registering a lot or wiring a job twice has no effect.
        client.wire_job("sums", "double", inputs=["numbers"], outputs=["doubled"])
        lots = sorted(path.name for path in folder.iterdir() if not path.suffix)
        print(f"{client.register_lots('sums', 'numbers', lots)} new lots")
        claims = client.claims("sums/double", count=2)
        for claim in claims:
            try:
                with claim:
                    double(folder, claim.lot)
                print(f"{claim.lot} done")
            except ClaimLost as lost:
                print(lost)
            except ValueError as error:
                print(f"{claim.lot} failed: {error}")
        if claims.why_nothing is not None:
            print(claims.why_nothing.summary)


if __name__ == "__main__":
    main()

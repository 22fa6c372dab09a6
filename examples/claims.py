"""A worker that claims lots by hand, one after the other, and is safe to kill at any moment.

    python examples/claims.py FOLDER

Each lot is a file of orders in FOLDER; what it makes is the same file with an ending of its own.
As many of these as you like can run at once: no lot is worked on twice. Leaving the `with` block
completes the claim, an error fails it and it is tried again later, Ctrl-C gives it back. A claim
that is lost, say because the machine slept, publishes nothing.
"""

import sys
from pathlib import Path

from penstock import ClaimLost, Client


def double(folder: Path, lot: str) -> None:
    """The work: each number twice."""
    numbers = [int(line) for line in (folder / lot).read_text().split()]
    (folder / f"{lot}.doubled").write_text("".join(f"{2 * number}\n" for number in numbers))


def main() -> None:
    """Register the files of the folder as lots, and work until there is nothing left."""
    folder = Path(sys.argv[1])
    with Client() as client:
        # Registering a lot twice is harmless, and so is wiring a job.
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

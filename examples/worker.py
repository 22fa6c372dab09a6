"""A function as a worker: run any number of these at once, on any machine.

    penstock jobs wire shop/add_up --input orders --output sums
    penstock lots register shop/orders 20261101 20261102
    python examples/worker.py ORDERS SUMS

It ends when no work is left; `add_up.work(loop=True)` waits for more.
"""

import csv
import sys
from pathlib import Path

import penstock


@penstock.job(namespace="shop", inputs=["orders"], outputs=["sums"])
def add_up(claim: penstock.Claim) -> None:
    """Add up the orders of one day."""
    orders, sums = map(Path, sys.argv[1:])
    with (orders / f"{claim.lot}.csv").open() as rows:
        total = sum(int(row["amount"]) for row in csv.DictReader(rows))
    (sums / f"{claim.lot}.txt").write_text(f"{total}\n")


if __name__ == "__main__":
    print(add_up.work())

"""Report the lineage of a script that exists already, with one block around its work.

    python examples/report_lineage.py ORDERS.csv TOTALS.csv

The script adds up orders by customer. `reported` tells the server when it begins, what it reads
and writes with their columns, and how it ended: an error marks the run failed, and the totals that
were current stay current. Any OpenLineage client does the same; this one needs no other package.
"""

import csv
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from penstock import Client

PRODUCER = "https://example.org/report_lineage"
RUN_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
SCHEMA = "https://openlineage.io/spec/facets/1-1-1/SchemaDatasetFacet.json"


def add_up(orders: Path, totals: Path) -> None:
    """The script as it was: read one file, write another."""
    sums: Counter[str] = Counter()
    with orders.open(newline="") as rows:
        for row in csv.DictReader(rows):
            sums[row["customer"]] += int(row["amount"])
    with totals.open("w", newline="") as file:
        csv.writer(file).writerows([("customer", "total"), *sorted(sums.items())])


def dataset(path: Path) -> dict[str, object]:
    """A file as OpenLineage describes a dataset, with the columns of its first line."""
    fields = []
    if path.exists():
        with path.open(newline="") as rows:
            fields = [{"name": name} for name in next(csv.reader(rows), [])]
    schema = {"_producer": PRODUCER, "_schemaURL": SCHEMA, "fields": fields}
    return {"namespace": "files", "name": path.name, "facets": {"schema": schema}}


@contextmanager
def reported(client: Client, job: str, inputs: list[Path], outputs: list[Path]) -> Iterator[str]:
    """Tell the server of the work in this block; gives the id of the run."""
    run = str(uuid.uuid4())

    def tell(kind: str) -> None:
        client.emit(
            {
                "eventType": kind,
                "eventTime": datetime.now(UTC).isoformat(),
                "producer": PRODUCER,
                "schemaURL": RUN_EVENT,
                "run": {"runId": run},
                "job": {"namespace": "scripts", "name": job},
                "inputs": [dataset(path) for path in inputs],
                "outputs": [dataset(path) for path in outputs] if kind == "COMPLETE" else [],
            }
        )

    tell("START")
    try:
        yield run
    except BaseException:
        tell("FAIL")
        raise
    tell("COMPLETE")


def main() -> None:
    """Run the script, reported."""
    orders, totals = map(Path, sys.argv[1:])
    with Client() as client:
        with reported(client, "add_up", [orders], [totals]) as run:
            add_up(orders, totals)
        made = client.dataset("files", totals.name)
        print(f"run {run} made version {made.current_version_number} of {made.name}")
        for node in client.lineage(f"dataset:files:{totals.name}").graph:
            print(node.id)


if __name__ == "__main__":
    main()

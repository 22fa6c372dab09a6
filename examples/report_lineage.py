"""Report the lineage of an existing script with one `with` block around its work.

    python examples/report_lineage.py ORDERS.csv TOTALS.csv

The script adds up orders by customer. `reported` sends the start of the run, its inputs and
outputs with their columns, and its end. An error marks the run as failed, and the current totals
stay current. Any OpenLineage client does the same; this program needs no other package.
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
    """Add up the orders of each customer. This is the existing script."""
    sums: Counter[str] = Counter()
    with orders.open(newline="") as rows:
        for row in csv.DictReader(rows):
            sums[row["customer"]] += int(row["amount"])
    with totals.open("w", newline="") as file:
        csv.writer(file).writerows([("customer", "total"), *sorted(sums.items())])


def dataset(path: Path) -> dict[str, object]:
    """Describe a file as an OpenLineage dataset, with the columns of its first line."""
    fields = []
    if path.exists():
        with path.open(newline="") as rows:
            fields = [{"name": name} for name in next(csv.reader(rows), [])]
    schema = {"_producer": PRODUCER, "_schemaURL": SCHEMA, "fields": fields}
    return {"namespace": "files", "name": path.name, "facets": {"schema": schema}}


@contextmanager
def reported(client: Client, job: str, inputs: list[Path], outputs: list[Path]) -> Iterator[str]:
    """Report the work in this block as a run, and yield the run's id."""
    run = str(uuid.uuid4())

    def emit(kind: str) -> None:
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

    emit("START")
    try:
        yield run
    except BaseException:
        emit("FAIL")
        raise
    emit("COMPLETE")


def main() -> None:
    """Run the script and print its lineage."""
    orders, totals = map(Path, sys.argv[1:])
    with Client() as client:
        with reported(client, "add_up", [orders], [totals]) as run:
            add_up(orders, totals)
        dataset_after = client.dataset("files", totals.name)
        print(f"run {run} made version {dataset_after.current_version_number} of {totals.name}")
        for node in client.lineage(f"dataset:files:{totals.name}").graph:
            print(node.id)


if __name__ == "__main__":
    main()

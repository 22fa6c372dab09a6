"""An arc in Python whose lots are split into parts that run in parallel.

    penstock arcs apply examples/sales_arc.py
    penstock arcs start

For each lot of shop/sales, `totals` makes the lot of shop/totals with the same id. The files of a
lot are grouped by the `region=…` in their names. Each region is a part with its own child run. A
retry runs only failed parts. The lot is published when all parts are done.
"""

import csv
import io
from typing import TYPE_CHECKING

import penstock

if TYPE_CHECKING:
    from penstock.arcs.workload.task import Context


@penstock.arc(
    namespace="shop",
    inputs=["sales"],
    outputs=["totals"],
    parts="region={region}",
    retry={"tries": 3, "back_off_seconds": 0},
    on_empty="skip",
)
def totals(context: "Context") -> None:
    """Add up the sales of one region."""
    total = 0
    for uri in context.uris:
        text = context.read(uri).decode()
        total += sum(int(row["amount"]) for row in csv.DictReader(io.StringIO(text)))
    context.write("total.txt", f"{total}\n".encode())

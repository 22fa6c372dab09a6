"""Invariants of arcs, their parts and their failed attempts."""

from typing import Final

from penstock.provenance.checks.invariant import Invariant, by_statement

INVARIANTS: Final[tuple[Invariant, ...]] = (
    by_statement(
        "arcs",
        "an arc is a job that works lot by lot",
        "broken_arcs",
        "arc {}/{} has no job, or one that is not wired",
    ),
    by_statement(
        "parts",
        "no part runs of a lot that is done, and parts and their runs say the same",
        "broken_parts",
        "part {3} of lot {2} of arc {0}/{1} is {4}, and its run {5}",
    ),
    by_statement(
        "leftovers",
        "only what failed is listed as left behind",
        "broken_leftovers",
        "attempt {3} of arc {0}/{1} on lot {2} is listed as failed, and its run is {4}",
    ),
)

"""Invariants of arcs, their parts and their failed attempts."""

from typing import Final

from penstock.provenance.checks.invariant import Invariant, by_statement

INVARIANTS: Final[tuple[Invariant, ...]] = (
    by_statement(
        "arcs",
        "an arc is a job that is partitioned into lots",
        "broken_arcs",
        "arc {}/{} has no job, or one that is not wired",
    ),
    by_statement(
        "parts",
        "no part of a done lot is running, and parts and their runs have the same state",
        "broken_parts",
        "part {3} of lot {2} of arc {0}/{1} is {4}, but its run is {5}",
    ),
    by_statement(
        "leftovers",
        "only failed attempts are listed as failed",
        "broken_leftovers",
        "attempt {3} of arc {0}/{1} on lot {2} is listed as failed, but its run is {4}",
    ),
)

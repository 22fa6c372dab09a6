"""Asking every invariant, one after the other."""

from collections.abc import Iterator
from itertools import islice

from penstock.errors import PenstockError
from penstock.provenance.checks import ALL, Grounds, Invariant
from penstock.provenance.checks.invariant import FOUND_MAX
from penstock.schema.provenance import Verdict

SHOWN_MAX = 20


def check(
    grounds: Grounds, invariants: tuple[Invariant, ...] = ALL, *, shown: int = SHOWN_MAX
) -> Iterator[Verdict]:
    """Every verdict, as soon as it is known. One that cannot be had does not stop the others."""
    for invariant in invariants:
        if grounds.stop.is_set():
            return
        yield _judge(grounds, invariant, shown)


def _judge(grounds: Grounds, invariant: Invariant, shown: int) -> Verdict:
    try:
        found = list(islice(invariant.find(grounds), FOUND_MAX))
    except PenstockError as error:
        return Verdict(
            invariant.name, invariant.sentence, holds=False, broken=0, more=False, first=(),
            error=str(error),
        )  # fmt: skip
    return Verdict(
        name=invariant.name,
        sentence=invariant.sentence,
        holds=not found,
        broken=len(found),
        more=len(found) == FOUND_MAX,
        first=tuple(found[:shown]),
    )

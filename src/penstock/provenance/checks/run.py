"""Checking all invariants, one after another."""

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
    """Yield every result as soon as it is known. A check that cannot run does not stop the
    others.
    """
    for invariant in invariants:
        if grounds.stop.is_set():
            return
        yield _judge(grounds, invariant, shown)


def _judge(grounds: Grounds, invariant: Invariant, shown: int) -> Verdict:
    try:
        violations = list(islice(invariant.find(grounds), FOUND_MAX))
    except PenstockError as error:
        return Verdict(
            invariant.name, invariant.sentence, holds=False, broken=0, more=False, first=(),
            error=str(error),
        )  # fmt: skip
    return Verdict(
        name=invariant.name,
        sentence=invariant.sentence,
        holds=not violations,
        broken=len(violations),
        more=len(violations) == FOUND_MAX,
        first=tuple(violations[:shown]),
    )

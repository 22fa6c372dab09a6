"""The cost to claim and publish a lot for an arc, with few and with many lots done."""

import gc
import statistics
import time
from collections.abc import Sequence
from contextlib import closing

from msgspec import Struct

from bench.claims import Say, tuned_interpreter
from bench.history import made_note, write_history
from bench.ours import JOB, LANDED, NAMESPACE, REFINED, WHO, InProcess
from bench.processes import Bench
from bench.vacuum import vacuum
from penstock.arcs.commands import ApplyArc, ClaimArcLots, PublishLot
from penstock.arcs.spec import Arc, Input, Output, Workload
from penstock.locks.commands import ClaimRef

FINISHED_FEW = 1_000
AT_ONCE = (1, 16)
ARC = Arc(
    name=JOB,
    namespace=NAMESPACE,
    inputs=(Input(dataset=LANDED.name),),
    outputs=(Output(dataset=REFINED.name),),
    workload=Workload(function="bench.arcs_engine:nothing"),
    running_max=max(AT_ONCE),
)


class Scheduling(Struct, frozen=True):
    """Microseconds per lot, by number of lots claimed at once; medians of turns."""

    at_once: int
    few: int
    many: int
    with_few_us: float
    with_many_us: float
    ratio: float  # few against many, median over adjacent turns


def measure_scheduling(bench: Bench, finished: int, turns: int, say: Say) -> list[Scheduling]:
    """Repeat the same in two PostgreSQL databases, in turns."""
    urls = [bench.empty_database("postgresql") for _ in range(2)]
    few = min(FINISHED_FEW, finished)
    say(f"postgresql · writing {few:,} and {finished:,} finished lots")
    for url, count in zip(urls, (few, finished), strict=True):
        write_history(url, count)
    with (
        tuned_interpreter(),
        closing(InProcess(urls[0])) as one,
        closing(InProcess(urls[1])) as two,
    ):
        for side in (one, two):
            side.plane.catalog.submit(ApplyArc(WHO, ARC)).result()
            side.fill(turns * sum(AT_ONCE))
        for url in urls:
            vacuum(url)
        return [_compare([one, two], at_once, turns, (few, finished), say) for at_once in AT_ONCE]


def _compare(
    sides: Sequence[InProcess], at_once: int, turns: int, finished: tuple[int, int], say: Say
) -> Scheduling:
    took: list[list[float]] = [[], []]
    gc.collect()
    for number in range(turns):
        # Alternate the order: load on the machine then affects both sides alike.
        for which in (0, 1) if number % 2 else (1, 0):
            began = time.perf_counter()
            schedule(sides[which], at_once)
            took[which].append((time.perf_counter() - began) / at_once)
    few_us, many_us = (1e6 * statistics.median(times) for times in took)
    ratio = statistics.median(few / many for few, many in zip(*took, strict=True))
    say(
        f"postgresql · {at_once} at once · {few_us:,.0f} µs for a lot with few, {many_us:,.0f} many"
    )
    return Scheduling(at_once, *finished, few_us, many_us, ratio)


def schedule(side: InProcess, at_once: int) -> None:
    """Claim and publish lots as the engine does, without a workload."""
    submit = side.plane.catalog.submit
    claims = submit(ClaimArcLots(NAMESPACE, JOB, WHO, at_once)).result().claims
    assert len(claims) == at_once, "lots were registered, and nobody else claims them"
    published = [
        submit(
            PublishLot(
                ClaimRef(claim.id, claim.token), ((REFINED, made_note(claim.lot, claim.id)),)
            )
        )
        for claim in claims
    ]
    for each in published:
        each.result()

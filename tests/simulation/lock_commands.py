"""Random lock commands of workers and administrators."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from penstock.arcs.commands import PublishLot
from penstock.catalog.commands import DatasetName
from penstock.locks.commands import (
    ClaimLots,
    ClaimRef,
    CompleteAndClaim,
    CompleteClaims,
    EndClaim,
    FailClaims,
    HoldDataset,
    HoldJob,
    HoldLot,
    HoldWork,
    PrioritizeWork,
    RegisterLots,
    ReleaseClaim,
    RenewClaim,
    ResubmitLots,
    WireJob,
)
from penstock.locks.commands.admin import AcceptLot
from penstock.lots.manifests import QualityCheck
from penstock.schema.locks import Stale
from tests.simulation.lock_model import LOTS, QUALITY

NS, ANN = "ns", ("ann", "because")
NO_CLAIM = ClaimRef("00000000-0000-7000-8000-000000000000", 1)
LEASE_SECONDS, TRIES_MAX, BACK_OFF_SECONDS = 60, 2, 10
# The wiring of c: an end of the chain, a second writer of clean, or more or less of these.
WIRINGS = (
    (("mart",), ()),
    (("raw",), ("clean",)),
    (("dim",), ("clean",)),
    (("raw", "dim"), ("clean",)),
    (("raw",), ("clean", "extra")),
    ((), ("clean",)),
)

End = Callable[[tuple[ClaimRef, ...]], Any]

jobs = st.sampled_from("abc")
datasets = st.sampled_from(["raw", "clean", "dim", "mart"])
lots = st.sampled_from(LOTS)
some_lots = st.lists(lots, min_size=1, max_size=3).map(tuple)
leases = st.sampled_from([None, 5, 600])
seconds = st.sampled_from([0, 1, 5, 10, 20, 59, 60, 60, 700])
booleans = st.booleans()
mostly = st.sampled_from([True, True, True, False])
holding = st.sampled_from([True, False, False])


def wire(
    job: str, inputs: tuple[str, ...], outputs: tuple[str, ...], stale: Stale | None = None
) -> WireJob:
    """Draw a wiring of a job."""
    return WireJob(
        NS,
        job,
        tuple(DatasetName(NS, name) for name in inputs),
        tuple(DatasetName(NS, name) for name in outputs),
        LEASE_SECONDS,
        TRIES_MAX,
        BACK_OFF_SECONDS,
        stale=stale,
    )


def _refs_of(machine: Any) -> st.SearchStrategy[ClaimRef]:
    """Draw claims that are or were live, some with a wrong token."""
    live = [ClaimRef(key, claim.token) for key, claim in machine.model.claims.items()]
    known = st.sampled_from(live[-4:] + machine.given[-8:])
    wrong = st.builds(
        lambda ref, by: ClaimRef(ref.id, ref.token + by), known, st.sampled_from([-1, 1])
    )
    likely = st.sampled_from(live) if live else known
    return st.sampled_from([likely, likely, likely, known, known, wrong]).flatmap(lambda of: of)


def _publications(machine: Any) -> st.SearchStrategy[Any]:
    """Draw the end of a claim, likely a live one, with a check result on one of its outputs."""
    return st.builds(
        lambda ref, dataset, success: PublishLot(
            ref, (), ((DatasetName(NS, dataset), (QualityCheck("sorted", success),)),)
        ),
        _refs_of(machine),
        st.sampled_from(["clean", "clean", "mart"]),
        st.sampled_from([True, False, False]),
    )


def _acceptances(machine: Any) -> st.SearchStrategy[Any]:
    """Draw the acceptance of a lot, likely one whose checks failed."""
    model = machine.model
    known = {key: row.version for key, row in model.made.items() if row.version}
    failed = [key for key, reasons in model.reasons.items() if QUALITY in reasons]
    keys = st.sampled_from([*failed, *failed, ("clean", LOTS[0])])
    return keys.map(lambda key: AcceptLot(*ANN, NS, key[0], key[1], known.get(key, NO_CLAIM.id)))


def _jobs_of(machine: Any) -> st.SearchStrategy[str]:
    """Draw a job, likely one with work."""
    model = machine.model
    ready = [job for job, lot in model.work if "READY" in model.states(job, lot)]
    return st.sampled_from([*"abc", *ready])


some_job: st.SearchStrategy[str] = st.runner().flatmap(_jobs_of)
refs: st.SearchStrategy[ClaimRef] = st.runner().flatmap(_refs_of)
publications: st.SearchStrategy[Any] = st.runner().flatmap(_publications)
acceptances: st.SearchStrategy[Any] = st.runner().flatmap(_acceptances)
policies = st.sampled_from([Stale.IGNORE, Stale.RERUN])
some_refs = st.lists(refs, min_size=1, max_size=3).map(tuple)

registrations = st.builds(
    lambda dataset, lots, priority, renew: RegisterLots(NS, dataset, lots, "ann", priority, renew),
    st.sampled_from(["raw", "raw", "dim", "dim", "clean"]),
    some_lots,
    st.sampled_from([0, 0, 5]),
    booleans,
)
searches = st.builds(
    lambda job, owner, most, newest, lease: ClaimLots(NS, job, owner, most, newest, lease),
    some_job,
    st.sampled_from(["w1", "w2"]),
    st.integers(1, 3),
    booleans,
    leases,
)
ends: st.SearchStrategy[End] = st.sampled_from(
    [CompleteClaims, CompleteClaims, FailClaims, lambda refs: ReleaseClaim(refs[0])]
)
rewirings = st.sampled_from(WIRINGS).map(lambda sides: wire("c", *sides))

_WEIGHTED: tuple[tuple[int, st.SearchStrategy[Any]], ...] = (
    (8, searches),
    (2, st.builds(lambda job, lots: ClaimLots(NS, job, "w3", lots=lots), some_job, some_lots)),
    (2, st.builds(RenewClaim, refs, leases)),
    (5, some_refs.map(CompleteClaims)),
    (3, st.builds(CompleteAndClaim, searches, some_refs)),
    (2, publications),
    (1, acceptances),
    (4, some_refs.map(FailClaims)),
    (2, refs.map(ReleaseClaim)),
    (4, registrations),
    (3, st.builds(lambda job, lots: ResubmitLots(*ANN, NS, job, lots), jobs, some_lots)),
    (1, st.builds(lambda job, lot: EndClaim(*ANN, NS, job, lot), jobs, lots)),
    (1, st.builds(lambda job, hold: HoldJob(*ANN, NS, job, hold), jobs, holding)),
    (1, st.builds(lambda name, hold: HoldDataset(*ANN, NS, name, hold), datasets, holding)),
    (2, st.builds(lambda d, lot, hold: HoldLot(*ANN, NS, d, lot, hold), datasets, lots, holding)),
    (2, st.builds(lambda job, lot, hold: HoldWork(*ANN, NS, job, lot, hold), jobs, lots, holding)),
    (
        1,
        st.builds(
            lambda job, lots, priority: PrioritizeWork(*ANN, NS, job, lots, priority),
            jobs,
            some_lots,
            st.sampled_from([-3, 0, 8]),
        ),
    ),
)
_many_kinds = st.sampled_from([kind for weight, kind in _WEIGHTED for _ in range(weight)])
_any_command: st.SearchStrategy[Any] = _many_kinds.flatmap(lambda kind: kind)

commands = st.integers(0, 11).flatmap(lambda n: rewirings if n == 11 else _any_command)
many_commands = st.lists(_any_command, min_size=2, max_size=5)

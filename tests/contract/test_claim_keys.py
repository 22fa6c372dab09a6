"""A claim that is asked for again with the same key is given once."""

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import pytest

from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.parse import Limits, read_event
from penstock.errors import Conflict
from penstock.ids import job_id, new_id
from penstock.locks.claiming import keyed_run
from penstock.locks.commands import (
    ClaimLots,
    ClaimRef,
    CompleteAndClaim,
    CompleteClaims,
    HoldJob,
    ReleaseClaim,
)
from tests.contract.lot_site import Site, open_site
from tests.invariants import broken_invariants

LOTS = ("1", "2", "3", "4")


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean, with four lots."""
    with open_site(database_url) as site:
        site.wire("a", ["raw"], ["clean"])
        site.register("raw", LOTS)
        yield site


def claim(key: str | None, count: int = 2, owner: str = "w1") -> ClaimLots:
    return ClaimLots("ns", "a", owner, count, key=key)


def live(site: Site) -> list[str]:
    with site.catalog.read() as tx:
        return sorted(lot for _, lot in tx.fetch("running_lots"))


TIMED = "0199d1f0-5a1e-7c3b-8f00-2b9c6a1d4e77"


@pytest.mark.parametrize("key", [TIMED, "nightly", "é\x00" * 300])
def test_the_same_key_again_is_the_same_claims(site: Site, key: str) -> None:
    first = site.do(claim(key))
    site.now += 1000
    assert site.do(claim(key)) == first
    assert site.do(claim(key, count=1)) == site.do(claim(key, count=9)) == first
    assert live(site) == ["1", "2"]
    assert [found.lot for found in site.do(claim(key + "x"))] == ["3", "4"]


def test_without_a_key_each_call_claims(site: Site) -> None:
    assert [c.lot for _ in range(2) for c in site.do(claim(None))] == list(LOTS)


def test_a_key_belongs_to_one_job(site: Site) -> None:
    site.wire("b", ["raw"], ["mart"])
    here, there = site.do(claim("k")), site.do(ClaimLots("ns", "b", "w1", 2, key="k"))
    assert [c.lot for c in here] == [c.lot for c in there] == ["1", "2"]
    assert not {c.id for c in here} & {c.id for c in there}


def test_lots_that_were_named_are_claimed_once(site: Site) -> None:
    named = ClaimLots("ns", "a", "w1", lots=("3", "1"), key="k")
    first = site.do(named)
    assert [c.lot for c in first] == ["3", "1"]
    assert site.do(named) == first
    with pytest.raises(Conflict, match="lot 3 is RUNNING"):
        site.do(ClaimLots("ns", "a", "w1", lots=("3",), key="other"))


def test_what_is_held_since_is_still_told(site: Site) -> None:
    first = site.do(claim("k"))
    site.do(HoldJob("ann", "stop", "ns", "a", hold=True))
    assert site.do(claim("k")) == first
    assert site.do(claim("new")) == []


def test_a_key_that_found_nothing_may_find_something_later(site: Site) -> None:
    site.do(claim(None, 4))
    assert site.do(claim("k")) == []
    site.register("raw", ["5"])
    assert [c.lot for c in site.do(claim("k"))] == ["5"]


def test_a_key_never_claims_more_than_once(site: Site) -> None:
    one, two = site.do(claim("k"))
    site.do(CompleteClaims((ClaimRef(one.id, one.token),)))
    assert site.do(claim("k")) == [two]
    site.do(ReleaseClaim(ClaimRef(two.id, two.token)))
    with pytest.raises(Conflict, match="claims by job ns/a with key 'k' are over"):
        site.do(claim("k"))
    assert live(site) == []


def test_a_key_is_of_one_owner(site: Site) -> None:
    site.do(claim("k"))
    with pytest.raises(Conflict, match="by 'w1', not by 'w2'; each call needs a key of its own"):
        site.do(claim("k", owner="w2"))


def test_a_run_that_somebody_else_told_of_is_no_claim(site: Site) -> None:
    """Whoever knows a key can report a run under the id that its claim would have."""
    run_id = keyed_run(job_id("ns", "a"), "k", 0)
    body = (
        '{"eventType":"START","eventTime":"2026-11-15T12:00:00Z","producer":"x","job":'
        f'{{"namespace":"ns","name":"z"}},"run":{{"runId":"{run_id}"}}}}'
    )
    site.do(ReceiveEvent(read_event(body.encode(), Limits(name_length_max=100, json_depth_max=9))))
    with pytest.raises(Conflict, match="are over; claim more with another key"):
        site.do(claim("k"))
    assert live(site) == []


def test_two_at_once_get_the_same_claims(site: Site, database_url: str) -> None:
    """From two servers, four callers each."""
    with ExitStack() as stack:
        other = stack.enter_context(open_site(database_url))
        pool = stack.enter_context(ThreadPoolExecutor(8))
        for number in range(4):
            start, key = Barrier(8), new_id()

            def ask(here: Site, start: Barrier = start, key: str = key) -> list[tuple[str, int]]:
                start.wait()
                return [(c.id, c.token) for c in here.do(claim(key, 1))]

            answers = list(pool.map(ask, [site, other] * 4))
            assert len(set(map(tuple, answers))) == 1
            assert live(site) == list(LOTS[: number + 1])
    assert broken_invariants(site.database, lambda: site.now) == []


def test_a_refused_end_of_a_claim_is_not_kept_in_memory(site: Site) -> None:
    [ended] = site.do(CompleteClaims((ClaimRef(new_id(), 1),)))
    assert ended.refused is not None
    refusal = weakref.ref(ended.refused)
    del ended
    site.do(claim(None))  # the writer lets go of the batch before
    gc.collect()
    assert refusal() is None


def test_the_same_call_from_many_completes_once_and_claims_once(site: Site) -> None:
    (first,) = site.do(claim(None, count=1))
    both = CompleteAndClaim(claim("k"), (ClaimRef(first.id, first.token),))
    sent = [site.catalog.submit(both) for _ in range(8)]
    taken = [future.result() for future in sent]
    assert sum(one.ended[0].refused is None for one in taken) == 1
    assert {tuple(found.id for found in one.claimed) for one in taken} == {
        tuple(found.id for found in taken[0].claimed)
    }
    assert live(site) == ["2", "3"]
    assert broken_invariants(site.database, lambda: site.now) == []

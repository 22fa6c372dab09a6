"""The watcher dies anywhere, or is not alone: every object is still in one lot."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.arcs.arrivals.commands import DeleteArrival, PublishArrivals
from penstock.arcs.arrivals.scan import RoundResult
from penstock.arcs.arrivals.watcher import Watcher
from penstock.arcs.outputs.state_keys import KeyRepair
from penstock.clock import HOUR, Micros
from penstock.schema.arrivals import Late
from penstock.schema.lot_ids import Interval
from tests.contract.arrival_process import doomed_watcher
from tests.contract.arrival_site import MINUTE, NOON, Fuse, Killed, Site, fused_watcher


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(database_url, tmp_path)
    yield site
    site.close()


def test_concurrent_watchers_do_no_harm(site: Site) -> None:
    """The second decides on data from before the first write: its decision is void."""
    site.declare()
    for number in range(5):
        site.put(f"{number}", NOON + number)
    site.now = NOON + 11 * MINUTE
    seen: list[RoundResult] = []

    class Rival:
        """A second watcher that is always faster."""

        def __init__(self) -> None:
            self.read = site.catalog.read

        def submit(self, command: Any) -> Any:
            if isinstance(command, PublishArrivals):
                seen.append(site.watcher().go_round(site.now))
            return site.catalog.submit(command)

    rivalled: Any = Rival()
    slow = Watcher(rivalled, site.objects, lambda: site.now)
    assert slow.go_round(site.now) == RoundResult(has_more=True)
    assert seen == [RoundResult(assigned=5, closed=2, empty=1)]
    assert slow.go_round(site.now) == RoundResult()
    site.check()
    manifests = [e.key for e in site.objects.list("datasets") if "attempt=" in e.key]
    assert len(manifests) == 2


SCRIPT: dict[int, list[tuple[str, int, bytes]]] = {
    0: [("a", 0, b"1"), ("b", 1, b"22"), ("c", 6, b"333")],
    6: [],
    7: [("late", 2, b"4444")],
    8: [("a", 0, b"55555")],
    11: [],
    13: [("d", 12, b"666666"), ("late too", 7, b"7")],
    21: [],
}


def tell(site: Site) -> Iterator[Micros]:
    """Let objects of all kinds arrive in twenty minutes; yield the times of the rounds."""
    for minutes, arriving in SCRIPT.items():
        site.now = NOON + minutes * MINUTE
        for key, at, content in arriving:
            site.put(key, NOON + at * MINUTE, content)
        yield site.now


@pytest.mark.parametrize("late", Late)
def test_death_at_any_call_loses_and_doubles_nothing(site: Site, late: Late) -> None:
    """Kill the watcher after the same call of each round; another one continues."""
    top, deaths = site.landing, 0
    for calls in range(1000):
        site.landing = top / str(calls)
        site.landing.mkdir()
        site.now, dataset, before = NOON, f"raw {calls}", deaths
        site.declare(dataset, late=late, location=str(site.landing))
        for now in tell(site):
            try:
                fused_watcher(site, Fuse(calls)).go_round(now)
            except Killed:
                deaths += 1
                site.check()
                site.watcher().go_round(now)
        site.check()
        _check_story(site, dataset, late)
        KeyRepair(site.catalog, site.objects).run()
        site.check_keys(dataset)
        site.do(DeleteArrival("me", "ns", dataset))
        if deaths == before:
            break
    assert calls < 999
    assert deaths > 50


def _check_story(site: Site, dataset: str, late: Late) -> None:
    lots = site.lots(dataset)
    assert list(lots) == list(Interval.MINUTES_5.lots(NOON, NOON + 20 * MINUTE))
    sizes = {i.uri.rpartition("/")[2]: i.size for each in lots.values() for i in each.uris}
    refused = {uri.rpartition("/")[2] for uri in site.refused(dataset)}
    whole = {"a": 5, "b": 2, "c": 3, "d": 6, "late": 4, "late%20too": 1}
    if late is Late.REFUSE:
        assert sizes == {"a": 1, "b": 2, "c": 3, "d": 6}
        assert refused == {"a", "late", "late%20too"}
    else:
        assert (sizes, refused) == (whole, set())


class Model:
    """The expected lot of each object."""

    def __init__(self, late: Late) -> None:
        self.late = late
        self.open_from = NOON
        self.placed: dict[str, tuple[str, int]] = {}  # the lot of an object, and its size there
        self.refused: dict[str, int] = {}

    def go_round(self, objects: dict[str, tuple[Micros, int]], now: Micros) -> None:
        until = max(self.open_from, (now - MINUTE) // (5 * MINUTE) * 5 * MINUTE)
        first = Interval.MINUTES_5.lot_at(self.open_from)
        for name, (at, size) in objects.items():
            held = self.placed.get(name)
            if size in (held[1] if held else None, self.refused.get(name)):
                continue
            home = Interval.MINUTES_5.lot_at(at)
            if held is None and at >= self.open_from:
                if at < until:
                    self._place(name, home, size)
            elif self.late is Late.REFUSE:
                self.refused[name] = size
            elif self.late is Late.AMEND:
                self._place(name, held[0] if held else home, size)
            elif until > self.open_from:
                self._place(name, first, size)
        self.open_from = until

    def _place(self, name: str, lot: str, size: int) -> None:
        self.placed[name] = lot, size
        self.refused.pop(name, None)

    def lots(self) -> dict[str, dict[str, int]]:
        found = {lot: dict[str, int]() for lot in Interval.MINUTES_5.lots(NOON, self.open_from)}
        for name, (lot, size) in self.placed.items():
            found.setdefault(lot, {})[name] = size
        return found


arriving = st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 40))
rounds = st.lists(st.tuples(st.lists(arriving, max_size=4), st.integers(0, 12)), max_size=8)


EXAMPLES = count()


@given(late=st.sampled_from(Late), told=rounds)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lots_follow_the_model_for_any_arrivals(
    site: Site, late: Late, told: list[tuple[list[tuple[str, int]], int]]
) -> None:
    shutil.rmtree(site.landing)
    site.landing.mkdir()
    site.now, model = NOON, Model(late)
    dataset = f"raw {next(EXAMPLES)}"
    site.declare(dataset, late=late)
    objects: dict[str, tuple[Micros, int]] = {}
    try:
        for number, (coming, minutes) in enumerate(told, start=1):
            for name, at in coming:
                objects[name] = NOON + at * MINUTE, number
                site.put(name, NOON + at * MINUTE, b"x" * number)
            site.now += minutes * MINUTE
            site.watcher().go_round(site.now)
            model.go_round(objects, site.now)
            found = {
                lot: {item.uri.rpartition("/")[2]: item.size for item in each.uris}
                for lot, each in site.lots(dataset).items()
            }
            assert found == model.lots()
            refused = {uri.rpartition("/")[2] for uri in site.refused(dataset)}
            assert refused == model.refused.keys()
            site.check()
    finally:
        site.do(DeleteArrival("me", "ns", dataset))


@pytest.mark.xdist_group("doomed")
def test_killed_process_loses_and_doubles_nothing(database_url: str, tmp_path: Path) -> None:
    """The system kills the process, which is restarted until all is done."""
    site = Site(database_url, tmp_path)
    try:
        site.declare("raw", late=Late.NEXT)
        for number in range(60):
            site.put(f"{number}", NOON + number * MINUTE, b"x" * number)
        end = NOON + 2 * HOUR
        for calls in (3, 9, 14, 23, 31, 44, 10**9):
            with doomed_watcher(database_url, tmp_path, end) as told:
                for _, _ in zip(range(calls), told, strict=False):
                    pass
            site.check()
        KeyRepair(site.catalog, site.objects).run()
        site.check_keys()
        lots = site.lots()
        assert list(lots) == list(Interval.MINUTES_5.lots(NOON, end - 5 * MINUTE))
        assert [len(each.uris) for each in lots.values()] == [5] * 12 + [0] * 11
        sizes = sorted(item.size or 0 for each in lots.values() for item in each.uris)
        assert sizes == list(range(60))
    finally:
        site.close()

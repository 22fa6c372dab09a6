"""Gaps: every lot that is not simply there is named, in ranges, with the cause and its root."""

import random
from collections.abc import Iterator, Sequence
from itertools import groupby

import pytest

from penstock import ids
from penstock.catalog.commands import DatasetName
from penstock.catalog.rows import replace
from penstock.clock import DAY, HOUR, SECOND, Micros, format_time, parse_time
from penstock.errors import Invalid, NotFound
from penstock.locks.commands import (
    ClaimRef,
    HoldDataset,
    HoldLot,
    HoldWork,
    ReleaseClaim,
    ResubmitLots,
    Sweep,
    WireJob,
)
from penstock.locks.gaps import gaps as gap_module
from penstock.locks.gaps.spans import Span
from penstock.locks.rows import EXTERNAL_JOB, StatusRow, WorkRow
from penstock.locks.work_state import new_work
from penstock.lots.rows import LotDatasetRow, ManifestRow
from penstock.schema.catalog import DatasetRole
from penstock.schema.gaps import GapKind, Gaps
from penstock.schema.lot_ids import Interval
from penstock.schema.lots import Status
from penstock.states import ManifestState, WorkState
from tests.contract.lot_site import NOON, Site, hours, open_site

MISSING, WAITING, RUNNING, PARTIAL, HELD, EMPTY, REMOVED = GapKind
DAY_0 = parse_time("2026-11-14T00:00:00Z")


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean; b: clean and dim → mart."""
    with open_site(database_url) as site:
        site.wire("a", ["raw"], ["clean"], tries_max=2, back_off_seconds=10)
        site.wire("b", ["clean", "dim"], ["mart"])
        yield site


def ranges(found: Gaps) -> list[tuple[str, str, int, str]]:
    return [(gap.first[8:], gap.last[8:], gap.count, str(gap.kind)) for gap in found.ranges]


def roots(found: Gaps, number: int = 0) -> list[tuple[str, str, str | None]]:
    cause = found.ranges[number].cause
    assert cause is not None
    return [(root.dataset, root.lot, root.job.name if root.job else None) for root in cause.roots]


def sentence(found: Gaps, number: int = 0) -> str:
    cause = found.ranges[number].cause
    assert cause is not None
    return cause.sentence


def out_of_tries(site: Site, lot: str) -> None:
    site.fail("a", lot, "disk full")
    site.now += 11 * SECOND
    site.do(Sweep())
    site.fail("a", lot, "disk still full")


def test_the_gap_report_names_every_kind(site: Site) -> None:
    lots = hours(0, 24)
    site.register("raw", lots[:20])
    site.complete("a", lots[:4])
    site.complete("a", lots[4:6], ManifestState.EMPTY)
    site.complete("a", [lots[6]], ManifestState.REMOVED)
    site.complete("a", [lots[7]], ManifestState.PARTIAL)
    out_of_tries(site, lots[8])
    site.fail("a", lots[9])
    site.claim("a", lots[10])
    site.do(HoldWork("boss", "odd", "ns", "a", lots[11]))
    site.complete("a", lots[12:18])
    site.do(HoldLot("boss", "wrong", "ns", "clean", lots[15]))
    site.do(ResubmitLots("boss", "bug", "ns", "a", (lots[16],)))
    found = site.gaps("clean", lots[0], lots[-1])
    assert (found.first, found.last, found.count) == (lots[0], lots[-1], 24)
    assert ranges(found) == [
        ("PT1H04", "PT1H05", 2, "empty"),
        ("PT1H06", "PT1H06", 1, "removed"),
        ("PT1H07", "PT1H07", 1, "partial"),
        ("PT1H08", "PT1H08", 1, "held"),
        ("PT1H09", "PT1H09", 1, "partial"),
        ("PT1H10", "PT1H10", 1, "running"),
        ("PT1H11", "PT1H11", 1, "held"),
        ("PT1H15", "PT1H15", 1, "held"),
        ("PT1H16", "PT1H16", 1, "waiting"),
        ("PT1H18", "PT1H19", 2, "waiting"),
        ("PT1H20", "PT1H23", 4, "missing"),
    ]
    assert found.totals == {
        MISSING: 4, WAITING: 3, RUNNING: 1, PARTIAL: 2, HELD: 3, EMPTY: 2, REMOVED: 1,
    }  # fmt: skip
    assert (found.there, found.is_whole, found.is_cut) == (8, False, False)
    told = [gap.cause.sentence for gap in found.ranges if gap.cause is not None]
    for said, what in zip(
        told,
        (
            "without data",
            "its data was removed",
            "is not complete",
            "out of tries with lot 20261114PT1H08",
            "It is retried at",
            "'w1' holds it since",
            "is held by 'boss'",
            "is held by 'boss' since",
            "can work on lot",
            "can work on lot",
            "Input ns/raw has no lot 20261114PT1H20",
        ),
        strict=True,
    ):
        assert what in said


def test_a_dataset_that_is_all_there_has_no_gap(site: Site) -> None:
    lots = hours(0, 24)
    site.register("raw", lots)
    site.complete("a", lots[:23])
    site.complete("a", lots[23:], ManifestState.EMPTY)
    found = site.gaps("clean", None, lots[-1])
    assert (found.is_whole, ranges(found)) == (True, [("PT1H23", "PT1H23", 1, "empty")])
    assert site.gaps("raw", lots[0], lots[-1]).ranges == []


def test_a_claim_that_was_given_back_is_waiting_and_not_partial(site: Site) -> None:
    site.register("raw", hours(0, 1))
    claim = site.claim("a", hours(0, 1)[0])
    site.do(ReleaseClaim(ClaimRef(claim.id, claim.token)))
    assert ranges(site.gaps("clean", *hours(0, 1) * 2)) == [("PT1H00", "PT1H00", 1, "waiting")]


def test_times_are_half_open_and_a_lot_is_meant_whole(site: Site) -> None:
    site.register("raw", hours(3, 5))

    def asked(first: str | Micros | None, last: str | Micros | None) -> tuple[str, str, int]:
        found = site.gaps("raw", first, last)
        return found.first[8:], found.last[8:], found.count

    at = DAY_0 + 3 * HOUR
    assert asked(at, at + 2 * HOUR) == ("PT1H03", "PT1H04", 2)
    assert asked(at + 1, at + 2 * HOUR + 1) == ("PT1H04", "PT1H05", 2)
    assert asked(format_time(at), "2026-11-14T05:00:00Z") == ("PT1H03", "PT1H04", 2)
    assert asked("20261114PT1H03", "20261114PT1H03") == ("PT1H03", "PT1H03", 1)
    assert asked("20261114PT24H", "20261114PT24H") == ("PT1H00", "PT1H23", 24)
    site.now = NOON + 59 * 60 * SECOND
    assert asked(None, None) == ("PT1H03", "PT1H11", 33)
    with pytest.raises(Invalid, match="end it later"):
        asked(at, at)
    with pytest.raises(Invalid, match="10000000 at most"):
        asked(at, at + 10_000_001 * HOUR)


def test_lots_with_free_ids_have_no_gaps_that_could_be_named(site: Site) -> None:
    with pytest.raises(Invalid, match="it has none"):
        site.gaps("raw", None, None)
    site.register("raw", ["batch 1", "batch 2"])
    with pytest.raises(Invalid, match=r"free ids.*name an interval"):
        site.gaps("raw", hours(0, 1)[0], None)
    assert site.gaps("raw", *hours(0, 1) * 2, interval=Interval.HOUR).totals == {MISSING: 1}
    with pytest.raises(NotFound, match="no dataset"):
        site.gaps("nothing", None, None)


def test_the_interval_is_told_declared_or_found(site: Site) -> None:
    site.register("raw", [*hours(0, 2), "20261114PT5M000"])
    with pytest.raises(Invalid, match="PT1H, PT5M; name the one"):
        site.gaps("raw", None, None)
    assert site.gaps("raw", None, hours(0, 3)[-1], interval=Interval.HOUR).totals == {MISSING: 1}
    with site.database.write() as tx:
        declared = LotDatasetRow(ids.dataset_id("ns", "raw"), "PT5M", "1", 0, NOON)
        tx.write("put_lot_datasets", [declared])
    assert site.gaps("raw", None, "20261114PT5M003").totals == {MISSING: 3}
    site.wire("hourly", ["clock:PT1H"], ["report"])
    found = site.gaps("clock:PT1H", DAY_0, DAY_0 + HOUR)
    assert (found.interval, found.totals) == (Interval.HOUR, {MISSING: 1})
    assert "was not in use then" in sentence(found)


def test_other_ids_between_the_lots_are_not_lots_of_the_interval(site: Site) -> None:
    lots = hours(0, 3)
    site.register("raw", [lots[0], f"{lots[1]}-late", f"{lots[1]}PT5M000", lots[2]])
    found = site.gaps("raw", lots[0], lots[2], interval=Interval.HOUR)
    assert ranges(found) == [("PT1H01", "PT1H01", 1, "missing")]


def test_the_root_is_the_lot_that_nobody_has_registered(site: Site) -> None:
    lot = hours(7, 8)[0]
    site.register("dim", [lot])
    found = site.gaps("mart", lot, lot, interval=Interval.HOUR)
    assert ranges(found) == [("PT1H07", "PT1H07", 1, "waiting")]
    assert roots(found) == [("raw", lot, None)]
    assert "Root cause: " in sentence(found)
    assert "register it" in sentence(found)


def test_the_root_is_the_job_upstream_that_is_out_of_tries(site: Site) -> None:
    lot = hours(7, 8)[0]
    site.register("dim", [lot])
    site.register("raw", [lot])
    out_of_tries(site, lot)
    found = site.gaps("mart", lot, lot, interval=Interval.HOUR)
    assert roots(found) == [("clean", lot, "a")]
    cause = found.ranges[0].cause
    assert cause is not None
    assert cause.why is not None
    assert [each.job for each in cause.why.causes] == ["a"]
    assert "disk still full" in cause.roots[0].sentence


def test_a_hold_of_a_whole_dataset_is_the_cause_of_what_waits(site: Site) -> None:
    lots = hours(0, 2)
    site.register("raw", lots)
    site.do(HoldDataset("eve", "leaking", "ns", "clean"))
    found = site.gaps("clean", lots[0], lots[1], interval=Interval.HOUR)
    assert (found.totals, roots(found)) == ({WAITING: 2}, [("clean", lots[0], "a")])
    assert "Dataset ns/clean is held by 'eve'" in sentence(found)


def test_a_dataset_that_nobody_makes_says_what_to_do(site: Site) -> None:
    lots = hours(0, 3)
    site.register("raw", [lots[0]])
    site.register("raw", [lots[2]], ManifestState.PARTIAL)
    found = site.gaps("raw", lots[0], lots[2])
    assert [gap.kind for gap in found.ranges] == [MISSING, PARTIAL]
    assert f"register lot {lots[1]} when it exists" in sentence(found)
    assert roots(found) == [("raw", lots[1], None)]
    assert "is not complete" in sentence(found, 1)


def test_causes_stop_where_a_key_may_not_look(site: Site) -> None:
    theirs = DatasetName("theirs", "x")
    site.do(WireJob("theirs", "x", (theirs,), (DatasetName("ns", "shared"),)))
    site.wire("mine", ["shared"], ["own"])
    lot = hours(0, 1)[0]
    assert roots(site.gaps("own", lot, lot, interval=Interval.HOUR)) == [("x", lot, None)]
    narrowed = site.gaps("own", lot, lot, interval=Interval.HOUR, only="ns")
    assert roots(narrowed) == [("shared", lot, None)]
    hidden = site.gaps("shared", lot, lot, interval=Interval.HOUR, only="ns")
    assert "in a namespace that is not shown" in sentence(hidden)


def test_without_causes_none_is_asked_for(site: Site) -> None:
    found = site.gaps("clean", DAY_0, DAY_0 + DAY, interval=Interval.HOUR, with_causes=False)
    assert [(gap.count, gap.cause) for gap in found.ranges] == [(24, None)]


def test_of_very_many_ranges_the_first_are_told_and_all_are_counted(site: Site) -> None:
    span = Span(Interval.MINUTES_5, DAY_0 - 8 * DAY, DAY_0)
    lots = list(span.lots())
    site.register("raw", lots[::2])
    found = site.gaps("raw", span.start, span.end)
    assert (len(found.ranges), found.is_cut) == (gap_module.RANGES_MAX, True)
    assert found.totals == {MISSING: len(lots) // 2}
    assert found.there == len(lots) // 2
    assert [gap.first for gap in found.ranges] == lots[1 : 2 * gap_module.RANGES_MAX : 2]


# What a lot can be, by its rows: status, tried, manifest of its version, work of its job.
CASES: dict[
    GapKind | None, list[tuple[Status | None, int, ManifestState | None, WorkState | None]]
] = {
    None: [
        (Status.READY, 1, None, WorkState.DONE),
        (Status.READY, 1, ManifestState.COMPLETE, WorkState.DONE),
    ],
    MISSING: [(None, 0, None, None), (None, 1, None, WorkState.DONE)],
    WAITING: [
        (None, 0, None, WorkState.WAITING),
        (None, 0, None, WorkState.READY),
        (Status.RESUBMIT, 0, None, WorkState.READY),
        (Status.ERROR, 0, None, WorkState.READY),
        (Status.PENDING, 0, None, None),
    ],
    RUNNING: [(Status.RUNNING, 1, None, WorkState.RUNNING)],
    PARTIAL: [
        (Status.ERROR, 2, None, WorkState.RETRYABLE),
        (Status.READY, 1, ManifestState.PARTIAL, WorkState.DONE),
    ],
    HELD: [(Status.HOLD, 2, None, WorkState.HELD), (None, 0, None, WorkState.HELD)],
    EMPTY: [(Status.READY, 1, ManifestState.EMPTY, WorkState.DONE)],
    REMOVED: [(Status.READY, 1, ManifestState.REMOVED, WorkState.DONE)],
}


@pytest.mark.parametrize("interval", [Interval.MINUTES_5, Interval.HOUR, Interval.DAY])
def test_the_report_equals_a_list_of_every_lot(site: Site, interval: Interval) -> None:
    chance = random.Random(f"gaps {interval}")
    days = 2000 if interval is Interval.DAY else 70 if interval is Interval.HOUR else 5
    span = Span(interval, DAY_0 - days * DAY, DAY_0)
    lots = list(span.lots())
    assert lots == list(interval.lots(span.start, span.end))
    kinds: list[GapKind | None] = []
    while len(kinds) < len(lots):
        kinds += [chance.choice([None, *GapKind])] * chance.choice([1, 1, 2, 7, 40, 400])
    kinds = kinds[: len(lots)]
    write_lots(site, lots, kinds, chance)
    for _ in range(8):
        first, last = sorted(chance.sample(range(len(lots)), 2))
        found = site.gaps("clean", lots[first], lots[last], interval=interval, with_causes=False)
        told = [(gap.first, gap.last, gap.count, gap.kind) for gap in found.ranges]
        assert told == run_lengths(lots[first : last + 1], kinds[first : last + 1])
        counted = {kind: kinds[first : last + 1].count(kind) for kind in GapKind}
        assert found.totals == {kind: count for kind, count in counted.items() if count}
        assert found.there == kinds[first : last + 1].count(None)


def run_lengths(
    lots: Sequence[str], kinds: Sequence[GapKind | None]
) -> list[tuple[str, str, int, GapKind]]:
    found = []
    for kind, group in groupby(zip(lots, kinds, strict=True), key=lambda pair: pair[1]):
        names = [lot for lot, _ in group]
        if kind is not None:
            found.append((names[0], names[-1], len(names), kind))
    return found


def write_lots(
    site: Site, lots: Sequence[str], kinds: Sequence[GapKind | None], chance: random.Random
) -> None:
    """Rows as they are when lots are of these kinds, with older manifests and other readers."""
    dataset, job, reader = (
        *(ids.dataset_id("ns", "clean"), ids.job_id("ns", "a"), ids.job_id("ns", "b")),
    )
    status, manifests, work = list[StatusRow](), list[ManifestRow](), list[WorkRow]()
    for lot, kind in zip(lots, kinds, strict=True):
        state, tries, noted, doing = chance.choice(CASES[kind])
        version = ids.derived_id("test", lot)
        if state is not None:
            maker = EXTERNAL_JOB if doing is None else job
            made = version if state == Status.READY else None
            row = StatusRow(dataset, lot, DatasetRole.OUTPUT, maker, state, "", None, made, NOON)
            status.append(row)
            status.append(
                StatusRow(
                    dataset, lot, DatasetRole.INPUT, reader, Status.DONE, "", None, None, NOON
                )
            )
        if noted is not None:
            manifests.append(manifest(version, dataset, lot, noted))
        if chance.random() < 0.2:  # what it was once does not count
            before = ids.derived_id("before", lot)
            manifests.append(manifest(before, dataset, lot, ManifestState.REMOVED))
        if doing is not None:
            fresh = new_work(job, lot, 0, doing, NOON)
            work.append(replace(fresh, tries=tries, run_id=ids.derived_id("run", lot)))
    with site.database.write() as tx:
        tx.write("put_lot_status", status)
        tx.write("put_lot_manifests", manifests)
        tx.write("put_lot_work", work)


def manifest(version: str, dataset: str, lot: str, state: ManifestState) -> ManifestRow:
    return ManifestRow(version, dataset, lot, state, "key", 1, 1, "0" * 64, "", NOON)

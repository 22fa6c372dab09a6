"""Old replays that have ended are pruned with their steps."""

from collections.abc import Iterator

import pytest

from penstock import ids
from penstock.clock import DAY
from penstock.errors import Invalid
from penstock.operations import operation
from penstock.operations.operation import prune_operations
from penstock.operations.replays.commands import REPLAYS
from penstock.operations.replays.target import ReplayTarget
from tests.contract.replay_site import REPLAY, ReplaySite, open_replays


@pytest.fixture
def site(database_url: str) -> Iterator[ReplaySite]:
    """Three lots went through the diamond."""
    with open_replays(database_url) as opened:
        opened.all_done("a", "b", "c")
        yield opened


def prune(site: ReplaySite, *, dry_run: bool = False) -> int:
    at = site.site.database, lambda: site.site.now, 30 * DAY
    return prune_operations(REPLAYS, *at, dry_run=dry_run, pause=lambda seconds: None)


def left(site: ReplaySite, replay_id: str) -> int:
    """Count the remaining rows of the steps of a replay."""
    which = {"replay_id": ids.run_id(replay_id), "numbers": list(range(100))}
    with site.site.database.read() as tx:
        steps = tx.fetch("replay_steps_by_numbers", **which)
        return len(steps) + len(tx.fetch("replay_steps_after", **which))


def test_only_old_ended_replays_are_pruned(
    site: ReplaySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "BATCH_ROWS", 3)
    site.start(dataset="clean", lot="a")
    site.finish()
    site.replays.start(
        "cancelled", "ann", "odd", ReplayTarget(namespace="ns", dataset="raw", lot="b")
    )
    site.replays.cancel("cancelled", "ann", "not so odd")
    site.replays.start("open", "ann", "odd", ReplayTarget(namespace="ns", dataset="raw", lot="c"))
    site.site.now += 31 * DAY
    site.replays.start("young", "ann", "odd", ReplayTarget(namespace="ns", dataset="left", lot="a"))
    assert prune(site, dry_run=True) == 2
    assert len(site.replays.last()) == 4
    assert prune(site) == 2
    assert {each.target for each in site.replays.last()} == {
        "lot c of dataset ns/raw",
        "lot a of dataset ns/left",
    }
    assert [left(site, each) for each in (REPLAY, "cancelled", "open")] == [0, 0, 8]
    assert prune(site) == 0


def test_pruning_needs_an_age(site: ReplaySite) -> None:
    with pytest.raises(Invalid, match="90d"):
        prune_operations(REPLAYS, site.site.database, lambda: site.site.now, 0, dry_run=True)

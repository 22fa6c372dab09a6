"""The demo's story ends the same however often the whole process is killed."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.databases import Pool, sqlite_database
from tests.flow_site import FlowSite, actual_outcome, expected_outcome
from tests.simulation.test_kill import random_seed

# Each kill costs the running work one try, and its lease must expire.
PATIENT = {"tries": 1000, "back_off_seconds": 0, "lease_seconds": 2}
UP_SECONDS_MAX = 3.0  # the process lives at most this long before a kill


def test_the_flow_survives_kills_of_the_whole_process(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, _sqlite, kills=3, seed=1)


@pytest.mark.stress
def test_the_flow_survives_fifty_kills_on_sqlite(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, _sqlite, kills=50, seed=random_seed())


@pytest.mark.stress
def test_the_flow_survives_fifty_kills_on_postgresql(tmp_path: Path, postgres_pool: Pool) -> None:
    kill_repeatedly(tmp_path, lambda folder: postgres_pool.take(), 50, random_seed())


def kill_repeatedly(folder: Path, database: Callable[[Path], str], kills: int, seed: int) -> None:
    """Run the story until there were this many kills. Each time it must end the same."""
    left, number = kills, 0
    chance = random.Random(seed)
    while left > 0:
        number += 1
        story_folder = folder / f"story{number}"
        story_folder.mkdir()
        site = FlowSite(story_folder, database(story_folder), retry=PATIENT)
        left -= run_while_killing(site, chance, left)


def run_while_killing(site: FlowSite, chance: random.Random, most: int) -> int:
    """Run the story while the process is killed and restarted; return the number of kills."""
    lots: list[str] = []
    story_thread = threading.Thread(target=lambda: lots.append(site.run_story()))
    story_thread.start()
    kills = 0
    while story_thread.is_alive() and kills < most:
        story_thread.join(chance.uniform(0.05, UP_SECONDS_MAX))
        if story_thread.is_alive():
            site.process.kill()
            site.start()
            kills += 1
    story_thread.join()
    try:
        [lot] = lots
        assert actual_outcome(site, lot) == expected_outcome()
        assert site.broken_invariants() == []
    finally:
        site.close()
    return max(kills, 1)


def _sqlite(folder: Path) -> str:
    return sqlite_database(folder / "penstock.db")

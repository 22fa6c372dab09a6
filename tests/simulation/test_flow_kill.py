"""The demo's story ends the same however often the whole process is killed."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.databases import Pool, sqlite_database
from tests.flow_site import FlowSite, expected, found
from tests.simulation.test_kill import made_up_seed

# Each kill costs the running work one try, and its lease must expire.
PATIENT = {"tries": 1000, "back_off_seconds": 0, "lease_seconds": 2}
UP_SECONDS_MAX = 3.0  # the process lives at most this long before a kill


def test_the_flow_survives_kills_of_the_whole_process(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, _sqlite, kills=3, seed=1)


@pytest.mark.stress
def test_the_flow_survives_fifty_kills_on_sqlite(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, _sqlite, kills=50, seed=made_up_seed())


@pytest.mark.stress
def test_the_flow_survives_fifty_kills_on_postgresql(tmp_path: Path, postgres_pool: Pool) -> None:
    kill_again_and_again(tmp_path, lambda folder: postgres_pool.take(), 50, made_up_seed())


def kill_again_and_again(
    folder: Path, database: Callable[[Path], str], kills: int, seed: int
) -> None:
    """Run the story until there were this many kills. Each time it must end the same."""
    left, told = kills, 0
    chance = random.Random(seed)
    while left > 0:
        told += 1
        place = folder / f"telling{told}"
        place.mkdir()
        site = FlowSite(place, database(place), retry=PATIENT)
        left -= tell_while_dying(site, chance, left)


def tell_while_dying(site: FlowSite, chance: random.Random, most: int) -> int:
    """Run the story while the process is killed and restarted; return the number of kills."""
    lots: list[str] = []
    teller = threading.Thread(target=lambda: lots.append(site.tell_all()))
    teller.start()
    deaths = 0
    while teller.is_alive() and deaths < most:
        teller.join(chance.uniform(0.05, UP_SECONDS_MAX))
        if teller.is_alive():
            site.process.kill()
            site.start()
            deaths += 1
    teller.join()
    try:
        [lot] = lots
        assert found(site, lot) == expected()
        assert site.broken() == []
    finally:
        site.close()
    return max(deaths, 1)


def _sqlite(folder: Path) -> str:
    return sqlite_database(folder / "penstock.db")

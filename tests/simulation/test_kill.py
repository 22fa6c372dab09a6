"""Servers and databases killed under load: no acknowledged event is lost, none is half stored.

Long searches (`make stress`) use the seed in PENSTOCK_SEED, or draw one and print it.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.db import open_database
from tests.invariants import assert_database_holds
from tests.running import ServerProcess, serving
from tests.servers import PostgresServer
from tests.simulation.consistency import Tables, problems
from tests.simulation.load import Load
from tests.simulation.tables import STATEMENTS

CLIENTS = 8


def random_seed() -> int:
    seed = int(os.environ.get("PENSTOCK_SEED") or random.SystemRandom().randrange(10**9))
    print(f"PENSTOCK_SEED={seed}")
    return seed


def check(own_url: str, load: Load, *, all_answered: bool = False) -> None:
    """Check that every acknowledged event is in the log, and every event there stored whole."""
    database = open_database(own_url, extra=[STATEMENTS])
    try:
        with database.read() as tx:
            assert problems(tx) == []
            tables = Tables(tx)
    finally:
        database.close()
    payloads = {row.payload for row in tables.events}
    assert load.acknowledged.keys() <= payloads
    assert payloads <= load.sent.keys()
    if all_answered:
        assert payloads == load.acknowledged.keys()
    assert load.pins, "no run was looked at"
    for run, read in load.pins.items():
        versions = {
            tables.datasets[row.dataset_id].name: row.version_id
            for row in tables.io.values()
            if row.run_id == run and row.role == "INPUT"
        }
        assert versions.items() >= read.items(), f"what run {run} read has changed"
    assert_database_holds(own_url)


def kill_repeatedly(own_url: str, *, kills: int, most: int, seed: int) -> None:
    chance = random.Random(seed)
    server = ServerProcess.start(own_url)
    try:
        with Load(lambda: [server.url], clients=CLIENTS, seed=seed) as load:
            for _ in range(kills):
                load.wait_for(chance.randrange(1, most))
                server.kill()
                server = ServerProcess.start(own_url)
            load.wait_for(most)
        server.stop()
    finally:
        server.kill()
    check(own_url, load)
    assert 500 not in load.statuses


def test_a_server_killed_under_load_loses_nothing_acknowledged(
    own_url: str,
) -> None:
    kill_repeatedly(own_url, kills=2, most=150, seed=1)


@pytest.mark.stress
def test_a_server_killed_often_loses_nothing_acknowledged(
    own_url: str,
) -> None:
    kill_repeatedly(own_url, kills=40, most=400, seed=random_seed())


@pytest.fixture
def private_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of this test's own, to be killed."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-kill-", dir="/tmp"))
    server = PostgresServer.start(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


def kill_the_database(postgres: PostgresServer, *, kills: int, most: int, seed: int) -> None:
    chance = random.Random(seed)
    url = postgres.create_database()
    with serving(url) as server, Load(lambda: [server.url], clients=CLIENTS, seed=seed) as load:
        for _ in range(kills):
            load.wait_for(chance.randrange(1, most))
            postgres.kill()
            postgres.restart()
        load.wait_for(most)
    check(url, load)
    assert load.statuses.keys() <= {200, 201, 404, 429, 503}


def test_a_database_killed_under_load_loses_nothing_acknowledged(
    private_postgres: PostgresServer,
) -> None:
    kill_the_database(private_postgres, kills=1, most=150, seed=2)


@pytest.mark.stress
def test_a_database_killed_often_loses_nothing_acknowledged(
    private_postgres: PostgresServer,
) -> None:
    kill_the_database(private_postgres, kills=20, most=400, seed=random_seed())


@pytest.mark.stress
def test_alternate_kills_of_database_and_server_lose_nothing_acknowledged(
    private_postgres: PostgresServer,
) -> None:
    seed = random_seed()
    chance = random.Random(seed)
    url = private_postgres.create_database()
    server = ServerProcess.start(url)
    try:
        with Load(lambda: [server.url], clients=CLIENTS, seed=seed) as load:
            for _ in range(20):
                load.wait_for(chance.randrange(1, 300))
                private_postgres.kill()
                if chance.random() < 0.5:
                    server.kill()
                private_postgres.restart()
                if not server.is_alive:
                    server = ServerProcess.start(url)
            load.wait_for(100)
        server.stop()
    finally:
        server.kill()
    check(url, load)


def test_a_stopping_server_answers_everything_it_committed(
    own_url: str,
) -> None:
    server = ServerProcess.start(own_url)
    try:
        with Load(lambda: [server.url], clients=CLIENTS, seed=3) as load:
            load.wait_for(150)
            server.terminate()
            assert server.wait_for_end() == 0
            load.stop()
    finally:
        server.kill()
    check(own_url, load, all_answered=True)
    assert load.statuses.keys() <= {200, 201, 404, 503}


def two_servers(own_url: str, *, clients: int, most: int, seed: int) -> None:
    with serving(own_url) as first, serving(own_url) as second:
        urls = [first.url, second.url]
        with Load(lambda: urls, clients=clients, seed=seed) as load:
            load.wait_for(most)
    check(own_url, load, all_answered=True)
    assert load.statuses.keys() <= {200, 201, 404}


def test_two_servers_on_one_database_agree_under_load(own_url: str) -> None:
    two_servers(own_url, clients=16, most=500, seed=4)


@pytest.mark.stress
def test_two_servers_on_one_database_agree_under_a_long_load(own_url: str) -> None:
    two_servers(own_url, clients=32, most=20_000, seed=random_seed())


def test_one_of_two_servers_continues_after_the_others_kill(own_url: str) -> None:
    with serving(own_url) as survivor:
        victim = ServerProcess.start(own_url)
        urls = [survivor.url, victim.url]
        with Load(lambda: urls, clients=CLIENTS, seed=5) as load:
            load.wait_for(100)
            victim.kill()
            urls[:] = [survivor.url]
            load.wait_for(100)
    check(own_url, load)
    assert load.statuses.keys() <= {200, 201, 404}

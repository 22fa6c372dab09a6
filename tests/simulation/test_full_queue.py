"""A server whose queue is full says so at once, and what it refuses is nowhere."""

import json
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing

import httpx

from penstock.db import open_database
from tests.patience import HANG_SECONDS
from tests.running import serving
from tests.simulation.consistency import Tables, problems
from tests.simulation.tables import STATEMENTS

CALLS = 12


def event(number: int) -> str:
    document = {
        "eventTime": "2026-11-15T10:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": f"run {number}"},
        "job": {"namespace": "jobs", "name": f"job {number}"},
        "outputs": [{"namespace": "s3://lake", "name": f"dataset {number}"}],
    }
    return json.dumps(document)


def test_a_full_queue_answers_429_and_writes_nothing(database_url: str) -> None:
    """While this test holds the database's write lock, one event is at work and one may wait."""
    with (
        closing(open_database(database_url, extra=[STATEMENTS])) as database,
        serving(database_url, queue_length_max=1, batch_events_max=1) as server,
        ThreadPoolExecutor(CALLS) as pool,
    ):

        def send(number: int) -> httpx.Response:
            return httpx.post(
                f"{server.url}/api/v1/lineage", content=event(number), timeout=HANG_SECONDS
            )

        with database.write():
            calls = [pool.submit(send, number) for number in range(CALLS)]
            pending: set[Future[httpx.Response]] = set(calls)
            while len(pending) > 2:
                _, pending = wait(pending, return_when=FIRST_COMPLETED)
        answers = [call.result() for call in calls]

        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) >= CALLS - 2
        for answer in refused:
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json()["code"] == 429
        taken = {n for n, answer in enumerate(answers) if answer.status_code == 201}
        assert taken
        assert len(taken) + len(refused) == CALLS

        with database.read() as tx:
            assert problems(tx) == []
            tables = Tables(tx)
        assert {row.payload for row in tables.events} == {event(number) for number in taken}
        assert {job.name for job in tables.jobs.values()} == {f"job {n}" for n in taken}
        assert {d.name for d in tables.datasets.values()} == {f"dataset {n}" for n in taken}
        again = send(next(n for n in range(CALLS) if n not in taken))
        assert again.status_code == 201

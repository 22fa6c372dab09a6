"""While the database is away for hours, whoever looks at it each second says so once."""

import logging
from collections import Counter
from pathlib import Path

import pytest

import penstock.testing
from tests.doors.waiting import until

DUTIES = (
    "sweep failed",
    "delivery failed",
    "the engine could not look for work",
    "the watcher failed",
    "operations were not stepped",
)


def told(caplog: pytest.LogCaptureFixture, *levels: int) -> Counter[tuple[str, int | None, str]]:
    """How often each thread has told of each trouble with a duty."""
    lines = [record for record in caplog.records if record.levelno in levels]
    return Counter(
        (duty, line.thread, line.getMessage())
        for duty in DUTIES
        for line in lines
        if line.getMessage().startswith(duty)
    )


def test_a_database_that_is_away_is_told_once_by_each_who_looks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "penstock")

    def has_been_met_again() -> bool:
        met = told(caplog, logging.DEBUG, logging.WARNING)
        return {duty for (duty, *_), times in met.items() if times > 1} == set(DUTIES)

    with penstock.testing.server(tmp_path) as server, server.working(ingest=False):
        file = (tmp_path / "penstock.db").rename(tmp_path / "away")
        until(has_been_met_again)
        file.rename(tmp_path / "penstock.db")
        assert set(told(caplog, logging.WARNING).values()) == {1}

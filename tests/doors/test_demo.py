"""The demo: from nothing to a look around, and nothing left behind."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from penstock.clock import DAY
from penstock.demo.pipeline import STEPS, TABLES, pipeline
from tests.doors.commands import NOW, Terminal, environment, go_home

STORY = (
    "11 completed, 1 failed",
    "south-3.csv has the wrong sha-256",
    "is PENDING since",
    "river/bulletin        0         1",
    "manifest     complete",
    "deposited by hydrology@example.org to gauges",
    "20261114PT1H03: missing",
    "4 steps: 4 to rerun",
    "all hold",
    "■ marts.daily_revenue  V7",
    "disk quota",
)


def test_the_demo_tells_the_whole_story_and_serves_until_it_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Settings of the person who runs it must not get in its way.
    (tmp_path / "penstock.toml").write_text('host = "10.0.0.1"\n')
    out = tmp_path / "out"
    with out.open("wb") as stream:
        demo = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "demo", "--keep"],
            cwd=tmp_path,
            env=environment(tmp_path, TMPDIR=str(tmp_path), PENSTOCK_PORT="1", COLUMNS="160"),
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        while "Ctrl-C stops the server" not in (text := out.read_text()):
            assert demo.poll() is None, text
            time.sleep(0.05)
        for words in STORY:
            assert words in text
        found = re.search(r"export PENSTOCK_URL=(\S+)", text)
        assert found is not None
        go_home(monkeypatch, tmp_path)
        monkeypatch.setenv("PENSTOCK_URL", found[1])
        penstock = Terminal(capsys)
        shown = re.findall(r"^  penstock (.+)$", text, re.MULTILINE)
        assert len(shown) > 8
        for line in shown:
            assert penstock(*line.split()).text
        actions = [
            e["action"]
            for e in httpx.get(f"{found[1]}/api/v1/audit", verify=False).json()["entries"]
        ]
        assert {"dataset delete", "apply arc", "put collection"} <= set(actions)
    finally:
        demo.send_signal(signal.SIGINT)
        assert demo.wait() == 0
    assert list(tmp_path.glob("penstock-demo-*")) == []


def test_the_demo_tells_the_same_story_each_time() -> None:
    events = pipeline(NOW)
    assert events == pipeline(NOW)
    jobs = {event["job"]["name"] for event in events}
    assert len(jobs) >= len(STEPS) + 4
    named = {
        (dataset["namespace"], dataset["name"])
        for event in events
        for dataset in (*event["inputs"], *event["outputs"])
    }
    assert named == {(table.namespace, table.name) for table in TABLES.values()}
    runs = [event["run"]["runId"] for event in pipeline(NOW + DAY)]
    assert runs == [event["run"]["runId"] for event in events]
    times = [event["eventTime"] for event in events]
    assert times == sorted(times)

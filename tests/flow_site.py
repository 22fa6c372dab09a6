"""`penstock up` in one process, and the demo's story run against it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.client import Client
from penstock.demo.story import OUTPUTS, RETRY, Story, StoryOutcome, outcome, readings
from penstock.demo.workloads import FOLDER
from tests.running import ServerProcess
from tests.servers import free_port

LEVELS = {
    station: [int(readings(station, hour).split(b",")[2]) for hour in range(6)]
    for station in ("north", "south")
}


class FlowSite:
    """An installation that runs the story. Its process may be killed and restarted."""

    def __init__(
        self,
        folder: Path,
        database: str,
        retry: Mapping[str, int] = RETRY,
        **settings: object,
    ) -> None:
        self.folder = folder
        self._database = database
        self._settings: dict[str, Any] = {
            "objects": (folder / "objects").as_uri(),
            "ingest_folder": folder / "ingest",
            "ingest_session_seconds": 2,
            "port": free_port(),
            "demo_folder": folder,
            **settings,
        }
        assert FOLDER == "PENSTOCK_DEMO_FOLDER", "the workloads find it by its variable"
        self.process = self.start()
        self.client = Client(self.process.url, retry_seconds=120)
        self.story = Story(self.client, folder, retry=retry)

    def start(self) -> ServerProcess:
        """Start the process. A restart uses the same port."""
        self.process = ServerProcess.start(self._database, "up", **self._settings)
        return self.process

    def close(self) -> None:
        """Stop the process cleanly."""
        self.client.close()
        try:
            self.process.stop()
        finally:
            self.process.kill()

    def run_story(self) -> str:
        """Run the whole story and return its last lot."""
        story = self.story
        story.set_up()
        batch = story.deposit()
        assert story.wait_for_report(batch.id).status == "failed"
        assert story.mend(batch.id).status == "completed"
        story.wait_for_the_last(batch.id)
        story.wait_for_weather()
        return batch.id

    def broken_invariants(self) -> list[str]:
        """Check every invariant, with every byte read, and return the broken ones."""
        verdicts = list(self.client.check(deep=True))
        assert len(verdicts) > 20
        return [f"{verdict.name}: {verdict}" for verdict in verdicts if not verdict.holds]


def expected_outcome() -> StoryOutcome:
    """Compute how the story must end without the code under test."""
    clean = [
        "".join(f"{station},{hour},{level}\n" for hour, level in enumerate(levels))
        for station, levels in LEVELS.items()
    ]
    rows = {s: (max(levels), f"{sum(levels) / len(levels):.1f}") for s, levels in LEVELS.items()}
    totals = "station,max_cm,mean_cm\n" + "".join(
        f"{station},{most},{mean}\n" for station, (most, mean) in rows.items()
    )
    lines = "".join(f"{s}: {mean} cm, at most {most}\n" for s, (most, mean) in rows.items())
    contents: Mapping[str, list[str]] = {
        "clean": clean,
        "alerts": [],
        "totals": [totals],
        "bulletin": [f"{lines}no alerts\n"],
    }
    return StoryOutcome(
        {name: "complete" if contents[name] else "empty" for name in OUTPUTS},
        {name: tuple(sorted(map(_digest, contents[name]))) for name in OUTPUTS},
    )


def _digest(text: str) -> str:
    return f"sha-256:{hashlib.sha256(text.encode()).hexdigest()}"


def actual_outcome(site: FlowSite, lot: str) -> StoryOutcome:
    """Read how the story ended."""
    return outcome(site.client, lot)

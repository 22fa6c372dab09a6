"""The story of the demo: a deposit of readings with a damaged file, and a chain of arcs.

It uses only the client, so it runs against any server.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from penstock.client import Client
from penstock.errors import Conflict, Unavailable
from penstock.schema.ingest import ShownBatch
from penstock.schema.lots import Lot

NAMESPACE: Final = "river"
COLLECTION: Final = "gauges"
READINGS: Final = "readings"
LAST: Final = "bulletin"
STATIONS: Final = ("north", "south")
HOURS: Final = 6
DAMAGED: Final = "south-3.csv"
WEATHER: Final = "weather"
WEATHER_LOTS: Final = tuple(f"20261114PT1H{hour:02d}" for hour in range(6) if hour != 3)
OUTPUTS: Final = ("clean", "alerts", "totals", LAST)
RETRY: Final[Mapping[str, int]] = {"tries": 3, "back_off_seconds": 1}
_WORKLOADS: Final = "penstock.demo.workloads"
_LOOK_SECONDS: Final = 0.1
_OPEN: Final = ("pending", "processing", "reporting", "update-reporting")

T = TypeVar("T")
Report = Callable[[str], None]


def _arc(inputs: list[str], output: str, **more: Any) -> Mapping[str, Any]:
    return {
        "inputs": [{"dataset": name} for name in inputs],
        "outputs": [{"dataset": output}],
        "workload": {"function": f"{_WORKLOADS}:{output}"},
        **more,
    }


ARCS: Final[Mapping[str, Mapping[str, Any]]] = {
    "clean": _arc(
        [READINGS],
        "clean",
        parts={"function": f"{_WORKLOADS}:by_station"},
        checks=[f"{_WORKLOADS}:has_every_hour"],
    ),
    "alerts": _arc([READINGS], "alerts"),
    "totals": _arc(["clean"], "totals"),
    "bulletin": _arc(["totals", "alerts"], LAST),
    "smooth": {
        **_arc([WEATHER], "smooth"),
        "outputs": [{"dataset": "weather_smooth", "interval": "PT1H"}],
    },
}


class Story:
    """One run of the story, with a client and the folder of the depositor's files.

    `retry` replaces the retry policy of the arcs.
    """

    def __init__(
        self,
        client: Client,
        folder: Path,
        report: Report = lambda text: None,
        retry: Mapping[str, int] = RETRY,
    ) -> None:
        self._client = client
        self._retry = retry
        self._files = folder / "readings"
        self._report = report

    def set_up(self) -> None:
        """Write the files, and declare a collection and five arcs."""
        write_readings(self._files)
        client = self._client
        place = f"{self._files.as_uri()}/"
        client.put_collection(COLLECTION, dataset=READINGS, namespace=NAMESPACE, places=[place])
        for name, declaration in ARCS.items():
            client.put_arc(NAMESPACE, name, {**declaration, "retry": self._retry})
        client.register_lots(NAMESPACE, WEATHER, WEATHER_LOTS)
        self._report(f"{STATIONS_TEXT} wrote {len(STATIONS) * HOURS} files; {len(ARCS)} arcs wait")

    def deposit(self) -> ShownBatch:
        """Submit the files as one batch; a repetition returns the same batch."""
        manifest = self._files / "batch.checkm"
        batch = self._client.submit_batch(
            COLLECTION,
            manifest.as_uri(),
            type="manifest_of_files",
            submitter="hydrology@example.org",
            key="demo",
        )
        self._report(f"batch {batch.id} is queued")
        return batch

    def wait_for_report(self, batch_id: str) -> ShownBatch:
        """Wait until a batch is reported."""
        return self._until(lambda: self._reported(batch_id))

    def mend(self, batch_id: str) -> ShownBatch:
        """Replace the damaged file, resume the failed job, and report the batch."""
        (self._files / DAMAGED).write_bytes(readings(*_station_hour(DAMAGED)))
        return self._until(lambda: self._mended(batch_id))

    def wait_for_the_last(self, lot: str) -> Lot:
        """Wait until the last arc has published a lot."""
        return self._until(lambda: self._ready(LAST, lot))

    def wait_for_weather(self) -> None:
        """Wait until the present weather lots are processed."""
        for lot in WEATHER_LOTS:
            self._until(partial(self._ready, "weather_smooth", lot))

    def _ready(self, dataset: str, lot: str) -> Lot | None:
        found = self._client.lots(NAMESPACE, dataset).lots
        return next((each for each in found if each.lot == lot and each.status == "READY"), None)

    def _reported(self, batch_id: str) -> ShownBatch | None:
        batch = self._client.batch(batch_id)
        return None if batch.status in _OPEN else batch

    def _mended(self, batch_id: str) -> ShownBatch | None:
        """Return the completed batch, or take the next step."""
        client = self._client
        batch = client.batch(batch_id)
        if batch.status == "completed":
            return batch
        if batch.status == "failed":
            states = {job.status for job in client.batch_jobs(batch_id, limit=100).jobs}
            if "failed" in states:
                client.resume_batch(batch_id, "the file was damaged on its way, and is whole now")
            elif states == {"completed"}:
                client.update_report(batch_id, "the damaged file is there")
        return None

    def _until(self, look: Callable[[], T | None]) -> T:
        while True:
            try:
                result = look()
            except (Unavailable, Conflict):  # the server is away, or another caller was faster
                result = None
            if result is not None:
                return result
            time.sleep(_LOOK_SECONDS)


STATIONS_TEXT: Final = " and ".join(STATIONS)


def readings(station: str, hour: int) -> bytes:
    """Make the readings of a gauge in an hour."""
    level = 120 + 17 * ((hour * 7 + len(station)) % 5) + (40 if station == "south" else 0)
    return f"{station},{hour},{level}\n".encode()


def write_readings(folder: Path) -> None:
    """Write the files of a day and their manifest; one file does not match it."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for station in STATIONS:
        for hour in range(HOURS):
            file = folder / f"{station}-{hour}.csv"
            content = readings(station, hour)
            if not file.exists():
                file.write_bytes(content[:-3] if file.name == DAMAGED else content)
            digest = hashlib.sha256(content).hexdigest()
            rows.append(
                f"{file.as_uri()} | sha-256 | {digest} | | | {file.name} | | {file.stem} "
                f"| Hydrology | Gauge {station}, hour {hour} | 2026"
            )
    head = [
        "#%checkm_0.7",
        "#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest",
    ]
    (folder / "batch.checkm").write_text("\n".join([*head, *rows, "#%eof", ""]))


def _station_hour(name: str) -> tuple[str, int]:
    station, _, hour = name.removesuffix(".csv").partition("-")
    return station, int(hour)


class StoryOutcome(NamedTuple):
    """The end of the story: the digests and the state of each dataset's lot."""

    states: Mapping[str, str]
    digests: Mapping[str, tuple[str, ...]]


def outcome(client: Client, lot: str) -> StoryOutcome:
    """Read the outcome of a lot in every dataset of the arcs."""
    states, digests = {}, {}
    for dataset in OUTPUTS:
        manifest = client.manifest(NAMESPACE, dataset, lot)
        states[dataset] = manifest.state
        digests[dataset] = tuple(sorted(item.digest or "" for item in manifest.uris))
    return StoryOutcome(states, digests)

"""A server with the week of the demo, and with running, failed and held work."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from penstock.client import Client
from penstock.clock import system_clock
from penstock.demo.pipeline import pipeline
from tests.doors.commands import program
from tests.running import ServerProcess, serving

BATCH_EVENTS = 20
HOURS = 30
SHOP = "shop"
RAW, CLEAN, TOTALS = "clicks_raw", "clicks_clean", "clicks_totals"
CLEANING, SUMMING, REPORTING = "clean_clicks", "sum_clicks", "report_clicks"
FAILED_HOURS_AGO, HELD_HOURS_AGO, WORKING_HOURS_AGO = 9, 5, 2
COLLECTION = "ledgers"
PROFILE = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest"


@dataclass(frozen=True)
class Scene:
    """A filled server; its lots are addressed by hours before the start."""

    server: ServerProcess
    folder: Path
    settings: Mapping[str, str]
    client: httpx.Client
    started: datetime

    @property
    def url(self) -> str:
        """The address of the page."""
        return self.server.url

    def call(self, method: str, *segments: str, **request: Any) -> Any:
        """Call a path of the API; each part is encoded as one segment."""
        path = "/".join(["/api/v1", *(quote(segment, safe="") for segment in segments)])
        answer = self.client.request(method, path, **request)
        assert answer.is_success, answer.text
        return answer.json()

    def hour(self, ago: int) -> str:
        """Return the lot of an hour before the start."""
        at = self.started - timedelta(hours=ago)
        return f"{at:%Y%m%d}PT1H{at.hour:02d}"

    def work(self, *command: str) -> None:
        """Run a worker until no work is left."""
        done = program(self.folder, *command, "start", "--once", variables=dict(self.settings))
        assert done.code == 0, done.err


@contextmanager
def scene(folder: Path, started: datetime | None = None) -> Iterator[Scene]:
    """Run a filled server on a new database."""
    with empty_scene(folder, started) as filled:
        _load_the_demo(filled)
        _declare_arcs(filled)
        _register_and_run(filled)
        _ingest(filled)
        yield filled


@contextmanager
def empty_scene(folder: Path, started: datetime | None = None) -> Iterator[Scene]:
    """Run a server on a new database; its lots count back from `started`."""
    database = f"sqlite:///{folder / 'penstock.db'}"
    kept = {"objects": f"file://{folder}/objects", "ingest_folder": f"{folder}/work"}
    settings = {
        "PENSTOCK_DATABASE": database,
        **{f"PENSTOCK_{name.upper()}": value for name, value in kept.items()},
    }
    with serving(database, **kept) as server, server.client() as client:
        yield Scene(server, folder, settings, client, started or datetime.now(UTC))


def _load_the_demo(scene: Scene) -> None:
    events = pipeline(system_clock())
    with Client(scene.url) as client:
        for start in range(0, len(events), BATCH_EVENTS):
            assert not client.emit_batch(events[start : start + BATCH_EVENTS]).failed_events


def _declare_arcs(scene: Scene) -> None:
    bad = scene.hour(FAILED_HOURS_AGO)
    clean = 'for part in a b; do echo "$PENSTOCK_LOT" > "$PENSTOCK_OUTPUT/$part.csv"; done; '
    clean += f'test "$PENSTOCK_LOT" != {bad} || {{ echo "row 17: no such user" >&2; exit 1; }}'
    for name, reads, writes, command in (
        (CLEANING, RAW, CLEAN, clean),
        (SUMMING, CLEAN, TOTALS, 'echo 1 > "$PENSTOCK_OUTPUT/total.txt"'),
    ):
        scene.call(
            *("PUT", "namespaces", SHOP, "arcs", name),
            json={
                "description": f"Makes {writes} of {reads}, hour by hour.",
                "inputs": [{"dataset": reads}],
                "outputs": [{"dataset": writes, "interval": "PT1H"}],
                "workload": {"command": ["sh", "-c", command]},
                "retry": {"tries": 2, "backOffSeconds": 3600},
            },
        )
    scene.call(
        *("PUT", "namespaces", SHOP, "jobs", REPORTING, "wiring"),
        json={
            "inputs": [{"namespace": SHOP, "name": CLEAN}],
            "outputs": [{"namespace": SHOP, "name": "clicks_report"}],
        },
    )


def _register_and_run(scene: Scene) -> None:
    lots = [scene.hour(ago) for ago in range(HOURS, 0, -1)]
    scene.call("POST", "namespaces", SHOP, "datasets", RAW, "lots", json={"lots": lots})
    held = ("jobs", CLEANING, "lots", scene.hour(HELD_HOURS_AGO), "hold")
    scene.call("POST", "namespaces", SHOP, *held, json={"why": "the source sends it again"})
    scene.work("arcs")
    lot = scene.hour(WORKING_HOURS_AGO)
    scene.call(
        *("POST", "namespaces", SHOP, "jobs", REPORTING, "claims"),
        json={"owner": "worker-3@blue", "lots": [lot], "leaseSeconds": 3600},
    )


def _ingest(scene: Scene) -> None:
    place = scene.folder / "in"
    place.mkdir()
    (place / "north.csv").write_text("id,amount\n1,10\n")
    manifest = place / "batch.checkm"
    rows = "".join(
        f"file://{place}/{name}.csv | | | | | {name}.csv | | {name} | Ann | {name.title()} | 2026\n"
        for name in ("north", "south")
    )
    manifest.write_text(f"#%checkm_0.7\n#%profile | {PROFILE}\n{rows}#%eof\n")
    with Client(scene.url) as client:
        places = [f"file://{place}/"]
        client.put_collection(COLLECTION, dataset=COLLECTION, namespace=SHOP, places=places)
        client.submit_batch(COLLECTION, manifest.as_uri(), type="manifest_of_files")
    scene.work("ingest")

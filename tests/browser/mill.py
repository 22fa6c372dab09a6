"""A server with data for the pages of ingest, locks, replay, gaps and checks."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock import ids
from penstock.client import Client
from tests.browser.scene import PROFILE, Scene
from tests.doors.commands import program

MILL = "mill"
GRAIN, FLOUR, BREAD, SCALES = "grain", "flour", "bread", "weights"
GRINDING, BAKING, WEIGHING = "grind", "bake", "weigh"
SACKS = "sacks"
HOURS = tuple(f"20261114PT1H{hour:02d}" for hour in (5, 6, 7, 9, 10))
MISSING = "20261114PT1H08"
STALE, UNSALTED, WEIGHED = HOURS[0], HOURS[1], HOURS[2]
PENDING_BATCHES = 6
CHECKS = f"""
def has_salt(context):
    return context.lot != {UNSALTED!r}
"""


@dataclass(frozen=True)
class Mill:
    """A batch with a failed job, pending batches, a cancelled replay and a cancelled backfill."""

    scene: Scene
    failed: str
    pending: tuple[str, ...]
    replay: str = ""
    backfill: str = ""

    def call(self, method: str, *segments: str, **request: Any) -> Any:
        """Call the API."""
        return self.scene.call(method, *segments, **request)

    def jobs(self, batch: str) -> dict[str, Any]:
        """Return the jobs of a batch by file name."""
        jobs = self.call("GET", "ingest", "batches", batch, "jobs")["jobs"]
        return {job["payloadName"]: job for job in jobs}

    def work(self, capability: str, *options: str) -> None:
        """Run a worker until no work is left."""
        command = (capability, "start", "--once", *options)
        done = program(self.scene.folder, *command, variables=dict(self.scene.settings))
        assert done.code == 0, done.err


def add_mill(scene: Scene) -> Mill:
    """Make flour and bread on an empty server, with failures."""
    (scene.folder / "mill_checks.py").write_text(CHECKS)
    with Client(scene.url) as client:
        _declare(client)
        client.register_lots(MILL, GRAIN, HOURS)
        mill = Mill(scene, _submit(client, scene.folder, "harvest", "rye", "oats"), ())
        mill.work("arcs")
        client.register_lots(MILL, GRAIN, [STALE], renew=True)
        claims = {"owner": "scales@mill", "lots": [WEIGHED], "leaseSeconds": 3600}
        mill.call("POST", "namespaces", MILL, "jobs", WEIGHING, "claims", json=claims)
        mill.work("ingest")
        names = [f"later{number}" for number in range(PENDING_BATCHES)]
        pending = tuple(_submit(client, scene.folder, name, "rye", "spelt") for name in names)
    return replace(mill, pending=pending, replay=_replay(mill), backfill=_backfill(mill))


def _declare(client: Client) -> None:
    for name, reads, writes, more in (
        (GRINDING, GRAIN, FLOUR, {"stale": "ignore"}),
        (BAKING, FLOUR, BREAD, {"checks": ["mill_checks:has_salt"]}),
    ):
        client.put_arc(
            MILL,
            name,
            {
                "inputs": [{"dataset": reads}],
                "outputs": [{"dataset": writes, "interval": "PT1H"}],
                "workload": {"command": ["sh", "-c", 'echo 1 > "$PENSTOCK_OUTPUT/made.csv"']},
                **more,
            },
        )
    client.wire_job(MILL, WEIGHING, inputs=[f"{MILL}/{FLOUR}"], outputs=[f"{MILL}/{SCALES}"])


def _replay(mill: Mill) -> str:
    """Start and cancel a replay."""
    replay = ids.new_id()
    body = {"namespace": MILL, "dataset": FLOUR, "lot": HOURS[4], "why": "it looked damp"}
    mill.call("PUT", "replays", replay, json=body)
    mill.call("POST", "replays", replay, "cancel", json={"why": "it was the light"})
    return replay


def _backfill(mill: Mill) -> str:
    """Start and cancel a backfill."""
    body = {"from": HOURS[3], "to": HOURS[4], "all": True, "why": "the sieve was torn"}
    answer = mill.call("POST", "namespaces", MILL, "arcs", GRINDING, "backfills", json=body)
    backfill = str(answer["backfill"]["id"])
    mill.call("POST", "backfills", backfill, "cancel", json={"why": "another sieve"})
    return backfill


def _submit(client: Client, folder: Path, name: str, *files: str) -> str:
    """Submit a batch of files of which only the first exists."""
    place = folder / "sacks" / name
    place.mkdir(parents=True)
    (place / f"{files[0]}.csv").write_text("sack,kilograms\n1,25\n")
    client.put_collection(SACKS, dataset=SACKS, namespace=MILL, places=[f"file://{folder}/sacks/"])
    rows = "".join(
        f"file://{place}/{each}.csv | | | | | {each}.csv | | {name}-{each} | Ann | {each} | 2026\n"
        for each in files
    )
    manifest = place / "batch.checkm"
    manifest.write_text(f"#%checkm_0.7\n#%profile | {PROFILE}\n{rows}#%eof\n")
    return client.submit_batch(SACKS, manifest.as_uri(), type="manifest_of_files").id

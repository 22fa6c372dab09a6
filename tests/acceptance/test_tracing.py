"""A deposit is one trace, through ingest and two arcs, across all processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import sqlite_database
from tests.doors.commands import program
from tests.doors.waiting import until
from tests.running import ServerProcess
from tests.spans import Collector, SpanRecord, collecting

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ARCS = """
namespace = "shop"

[arcs.clean]
inputs = ["scans"]
outputs = ["cleaned"]
workload = ["sh", "-c", '''
    for n in 1 2; do
        mkdir -p "$PENSTOCK_OUTPUT/part=$n"
        echo "$TRACEPARENT" > "$PENSTOCK_OUTPUT/part=$n/rows"
    done''']

[arcs.total]
inputs = ["cleaned"]
outputs = ["totals"]
parts = { pattern = "part={n}/", running_max = 2 }
workload = ["sh", "-c", 'echo "$PENSTOCK_PART" > "$PENSTOCK_OUTPUT/total"']
"""
OF_A_DEPOSIT = {
    "ingest.submit",
    "ingest.batch-pending",
    "ingest.pending",
    "ingest.estimating",
    "ingest.provisioning",
    "ingest.downloading",
    "ingest.processing",
    "ingest.recording",
    "ingest.notify",
    "ingest.batch-reporting",
    "lot.publish",
}


class Site:
    """A server, workers and engines in separate processes, which send their spans."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "arcs.toml").write_text(ARCS)
        database = sqlite_database(folder / "penstock.db")
        settings = {
            "objects": (folder / "objects").as_uri(),
            "ingest_folder": str(folder / "ingest"),
            "traces": "otlp",
        }
        self.server = ServerProcess.start(database, **settings)
        self._variables = {f"PENSTOCK_{name.upper()}": text for name, text in settings.items()}
        self._variables |= {"PENSTOCK_DATABASE": database, "PENSTOCK_URL": self.server.url}
        self._client = self.server.client()
        places = {"places": [f"{folder.as_uri()}/"]}
        collection = {"namespace": "shop", "dataset": "scans", **places}
        assert (
            self._client.put("/api/v1/ingest/collections/scans", json=collection).status_code == 200
        )

    def run(self, *arguments: str) -> None:
        """Run a command to its end. By then it has sent its spans."""
        done = program(self.folder, *arguments, variables=self._variables)
        assert done.code == 0, done.err
        assert "Traceback" not in done.err, done.err

    def submit(self, **more: object) -> str:
        """Deposit a file from a traced client and return its batch."""
        path = self.folder / "page.txt"
        path.write_text("some words")
        answer = self._client.post(
            "/api/v1/ingest/batches",
            json={"collection": "scans", "url": path.as_uri(), **more},
            headers={"traceparent": CALLER},
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def close(self) -> None:
        """Stop the server, which sends its remaining spans."""
        self._client.close()
        if self.server.is_alive:
            self.server.stop()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as collector:
        for name, text in collector.variables.items():
            monkeypatch.setenv(name, text)
        yield collector


@pytest.fixture
def site(tmp_path: Path, collector: Collector) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def test_a_deposit_is_one_trace(site: Site, collector: Collector) -> None:
    site.run("arcs", "apply", "arcs.toml")
    batch = site.submit()
    site.run("ingest", "start", "--once")
    site.run("arcs", "start", "--once")
    site.close()
    spans = [span for span in collector.spans() if span.attributes.get("penstock.lot") == batch]
    assert len({span.trace for span in spans}) == 1
    assert len({span.id for span in spans}) == len(spans)
    names = [span.name for span in spans]
    assert set(names) == OF_A_DEPOSIT | {"arc.claim", "arc.task", "arc.part", "arc.publish"}
    assert {name for name in names if names.count(name) == 2} == {
        *("arc.claim", "arc.part", "arc.publish")
    }
    assert not any(span.failure for span in spans)

    [first] = [span for span in spans if not span.parent]
    assert (first.name, first.links) == ("ingest.submit", [CALLER[3:-3]])
    assert_parents(spans, first)
    [task] = [span for span in spans if span.name == "arc.task"]
    [rows] = site.folder.glob("objects/**/part=1/rows")
    assert rows.read_text().strip() == f"00-{task.trace}-{task.id}-01"


def assert_parents(spans: list[SpanRecord], first: SpanRecord) -> None:
    """Check that task spans belong to the claim and its process, and all others to the deposit."""
    by_id = {span.id: span for span in spans}
    claims = {s.id: s for s in spans if s.name == "arc.claim"}
    assert [s.attributes["penstock.job"] for s in claims.values()] == ["shop/clean", "shop/total"]
    tasks = [span for span in spans if span.name in ("arc.task", "arc.part")]
    inner = [*tasks, *(span for span in spans if span.name == "arc.publish")]
    assert {span.parent for span in inner} == set(claims)
    assert {s.attributes.get("penstock.part") for s in tasks} == {None, "part=1", "part=2"}
    for span in spans:
        if span.name == "lot.publish":
            assert by_id[span.parent].name == "ingest.batch-reporting"
        elif span is not first and span not in inner:
            assert span.parent == first.id, span.name
    workers = {s.process for s in spans if s.name.startswith("ingest.") and s is not first}
    [engine] = {span.process for span in claims.values()}
    assert len(workers) == 1
    assert workers.isdisjoint({first.process, engine})
    assert {span.process for span in tasks}.isdisjoint({first.process, engine, *workers})


def test_a_failed_step_has_an_error_span(site: Site, collector: Collector) -> None:
    batch = site.submit(digest={"algorithm": "sha-256", "value": "0" * 64})
    site.run("ingest", "start", "--once")
    until(lambda: any(span.failure for span in collector.spans()))
    [failed] = [span for span in collector.spans() if span.failure]
    assert failed.name == "ingest.downloading"
    assert "digest" in failed.failure
    assert failed.attributes["penstock.batch"] == batch

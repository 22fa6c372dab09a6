"""A real server for tests: it listens on a free port and runs in a thread of the test."""

import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from penstock.clock import Clock, system_clock
from penstock.config import Settings
from penstock.plane import Plane
from penstock.schema.admin import KeyRole
from penstock.server.serve import HttpServer
from tests.patience import HANG_SECONDS

API = "/api/v1"


@dataclass(frozen=True)
class Running:
    """A server that answers, and a client of it."""

    server: HttpServer
    client: httpx.Client
    _operator: list[str] = field(default_factory=list)

    @property
    def plane(self) -> Plane:
        return self.server.plane

    @property
    def token(self) -> str | None:
        """The token of an administrator's key; None while no key is needed."""
        return self._operator[0] if self._operator else None

    def key(self, name: str, role: KeyRole, namespace: str | None = None) -> dict[str, str]:
        """The header of a new key. With the first one, our client gets an administrator's key."""
        made = self.plane.keys.create(name, role, namespace=namespace, who="test")
        if not self._operator:
            operator = self.plane.keys.create("operator", KeyRole.ADMIN, who="test")
            self._operator.append(operator.token)
            self.client.headers.setdefault("authorization", f"Bearer {operator.token}")
        return {"authorization": f"Bearer {made.token}"}


@contextmanager
def running(
    database_url: str, *, clock: Clock = system_clock, **settings: Any
) -> Iterator[Running]:
    """Start a server on this database, and stop it at the end; its folders go with it."""
    with tempfile.TemporaryDirectory(prefix="penstock-served-") as folder:
        kept = {"objects": f"file://{folder}/objects", "ingest_folder": f"{folder}/ingest"}
        listens = {"host": "127.0.0.1", "port": 0, "database": database_url}
        with _running(Settings(**{**listens, **kept, **settings}), clock) as server:
            yield server


@contextmanager
def _running(settings: Settings, clock: Clock) -> Iterator[Running]:
    with HttpServer.open(settings, clock) as server:
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            with httpx.Client(base_url=server.url, timeout=HANG_SECONDS, verify=False) as client:
                yield Running(server, client)
        finally:
            server.stop()
            thread.join()


def path(*segments: str) -> str:
    """A path below the API's base, each segment encoded whole."""
    return "/".join([API, *(quote(segment, safe="") for segment in segments)])


def run_event(run: str = "r1", **changes: Any) -> dict[str, Any]:
    """An OpenLineage run event: job food:etl reads food:raw and writes food:clean."""
    event: dict[str, Any] = {
        "eventTime": "2026-11-15T10:00:00Z",
        "eventType": "START",
        "producer": "https://example.org/tests",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run, "facets": {}},
        "job": {"namespace": "food", "name": "etl", "facets": {}},
        "inputs": [{"namespace": "food", "name": "raw", "facets": _schema("a")}],
        "outputs": [{"namespace": "food", "name": "clean", "facets": _schema("b")}],
    }
    return {**event, **changes}


def _schema(*fields: str) -> Mapping[str, Any]:
    return {
        "schema": {
            "_producer": "https://example.org/tests",
            "_schemaURL": "https://openlineage.io/spec/facets/1-1-1/SchemaDatasetFacet.json",
            "fields": [{"name": field, "type": "VARCHAR"} for field in fields],
        }
    }


def post(client: httpx.Client, event: Mapping[str, Any]) -> None:
    """Send an event and see it acknowledged."""
    answer = client.post(f"{API}/lineage", json=event)
    assert answer.status_code == 201, answer.text
    assert answer.json() == {}

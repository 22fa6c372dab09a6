"""Arcs on a server of the test's own: declared over HTTP, run in the test's process."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.arcs.engine.single import run_lot
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.workload.task import Context
from penstock.schema.admin import KeyRole
from tests.doors.serving import Running, path, running

NAMESPACE = "shop"
HERE = "tests.doors.arc_site"
BAD_LOT = "20261115PT1H01"
EMPTY_LOT = "20261115PT1H02"
MAKE: dict[str, Any] = {
    "inputs": [{"dataset": "tick"}],
    "outputs": [{"dataset": "raw", "interval": "PT1H"}],
    "workload": {"function": f"{HERE}:make"},
    "retry": {"tries": 1, "backOffSeconds": 0},
}

while_it_works: list[Callable[[], None]] = []  # what happens before `make` writes


def make(context: Context) -> None:
    """Two objects of different days; nothing for one lot, and a failure for another."""
    for act in while_it_works:
        act()
    if context.lot == EMPTY_LOT:
        context.empty()
        return
    for day in ("1", "2"):
        context.write(f"day={day}/{context.lot}.txt", f"{context.lot} {day}".encode())
    if context.lot == BAD_LOT:
        raise RuntimeError("no luck")


def shout(context: Context) -> None:
    """The same in capitals, one part for each day."""
    for uri in context.uris:
        context.write(uri.rpartition("/")[2], context.read(uri).upper())


@dataclass(frozen=True)
class ArcSite:
    """A server; `call` gives what it answers."""

    server: Running
    executor: LocalThreads

    def call(self, method: str, *segments: str, status: int = 200, **request: Any) -> Any:
        """Call a path below the API's base."""
        answer = self.server.client.request(method, path(*segments), **request)
        assert answer.status_code == status, answer.text
        return answer.json()

    def refused(
        self,
        method: str,
        *segments: str,
        status: int,
        headers: Mapping[str, str] = {},
        params: Mapping[str, str] = {},
        **body: Any,
    ) -> str:
        """The words of a refusal."""
        answer = self.server.client.request(
            method,
            path(*segments),
            headers=headers,
            params=params,
            json=body if method in ("PUT", "POST") else None,
        )
        assert answer.status_code == status, answer.text
        return str(answer.json()["message"])

    def declare(self, name: str, **declaration: Any) -> Any:
        """Declare an arc of the site's namespace."""
        return self.call("PUT", *arc(name), json=declaration)

    def register(self, dataset: str, *lots: str) -> None:
        """Lots that came from outside."""
        at = ("namespaces", NAMESPACE, "datasets", dataset, "lots")
        assert self.call("POST", *at, json={"lots": lots}) == {"registered": len(lots)}

    def run(self, name: str, lot: str) -> bool:
        """Run a lot of an arc in this process."""
        plane = self.server.plane
        at = (plane.catalog, plane.objects, self.executor, plane.clock)
        return run_lot(*at, NAMESPACE, name, lot, owner="test")

    def key(self, role: KeyRole, namespace: str | None = None) -> dict[str, str]:
        """The header of a new key."""
        return self.server.key(f"{role} of {namespace}", role, namespace)

    @property
    def folder(self) -> Path:
        """Where the object store is."""
        at = self.server.plane.objects.path("x")
        assert at is not None
        return at.parent

    def state_keys(self) -> set[str]:
        """The state keys in the object store."""
        found = self.folder.glob("arcs/**/*.arc")
        return {str(each.relative_to(self.folder / "arcs")) for each in found}


def arc(name: str, *more: str) -> tuple[str, ...]:
    """The segments of an arc's path."""
    return "namespaces", NAMESPACE, "arcs", name, *more


def dataset(name: str, *more: str) -> tuple[str, ...]:
    """The segments of a dataset's path."""
    return "namespaces", NAMESPACE, "datasets", name, *more


@contextmanager
def arc_site(database_url: str) -> Iterator[ArcSite]:
    """Arc make reads tick and writes raw by the hour; arc shout makes loud of raw, by parts."""
    with running(database_url) as server, LocalThreads(4) as executor:
        site = ArcSite(server, executor)
        site.declare("make", **MAKE)
        site.declare(
            "shout",
            inputs=[{"dataset": "raw"}],
            outputs=[{"dataset": "loud", "interval": "PT1H"}],
            workload={"function": f"{HERE}:shout"},
            parts={"pattern": "day={day}"},
        )
        yield site
    while_it_works.clear()

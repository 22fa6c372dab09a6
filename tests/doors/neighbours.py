"""Two teams on one server: food, whose key looks, and hidden, whose jobs touch what is food's.

Whatever hidden does is called so: its jobs, workers, keys, errors and reasons. Datasets of its
source `lake` are called by what they hold, because food's jobs read and name them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.arcs.engine.single import run_lot
from penstock.arcs.executors.local import LocalThreads
from penstock.config import Settings
from penstock.plane import Plane
from penstock.schema.admin import KeyRole
from tests.doors.arc_site import HERE
from tests.doors.ingesting import working
from tests.doors.serving import API, Running, path, run_event, running
from tests.doors.waiting import until

HIDDEN = "hidden"
DAY = "20261115PT1H{:02d}"
BACKFILLED = {"from": "2026-11-15T00:00:00Z", "to": "2026-11-15T01:00:00Z", "why": "thin"}

Document = dict[str, Any]


@dataclass(frozen=True)
class Neighbours:
    """The server, the key of food, and the ids of what hidden has done and food has."""

    server: Running
    key: dict[str, str]
    ours: dict[str, str]
    theirs: dict[str, str]

    def get(self, target: str) -> Any:
        """What food is shown."""
        return self.server.client.get(f"{API}/{target}", headers=self.key)


@dataclass(frozen=True)
class _Team:
    """One team's calls, with a key of its administrator's."""

    server: Running
    key: dict[str, str]
    namespace: str

    def call(self, method: str, *segments: str, **body: Any) -> Any:
        sent = body if method in ("PUT", "POST") else None
        target = path(*segments)
        answer = self.server.client.request(method, target, json=sent, headers=self.key)
        assert answer.is_success, (target, answer.text)
        return answer.json()

    def job(self, name: str, *more: str) -> tuple[str, ...]:
        return "namespaces", self.namespace, "jobs", name, *more

    def wire(self, name: str, inputs: list[str], outputs: list[str]) -> None:
        named = {"inputs": list(map(_named, inputs)), "outputs": list(map(_named, outputs))}
        self.call("PUT", *self.job(name, "wiring"), **named, triesMax=1, backOffSeconds=0)

    def claim(self, name: str, lot: str) -> Document:
        owner = f"{self.namespace} worker"
        found = self.call("POST", *self.job(name, "claims"), owner=owner, lots=[lot])
        claim: Document = found["claims"][0]
        return claim

    def end(self, how: str, claim: Document, **more: Any) -> None:
        self.call("POST", "claims", claim["id"], how, token=claim["token"], **more)

    def register(self, dataset: str, *lots: str) -> None:
        self.call("POST", *_dataset(dataset, "lots"), lots=list(lots))

    def act(self, *segments: str) -> None:
        self.call("POST", *segments, why=f"{self.namespace} reason")

    def hold_lot(self, dataset: str, lot: str) -> None:
        """A hold is told to all whom it stops, with who gave it and why."""
        self.call("POST", *_dataset(dataset, "lots", lot, "hold"), why="bad harvest")

    def arc(self, name: str, inputs: list[str], output: str, function: str) -> None:
        made = {**_stored(output), "interval": "PT1H"}
        self.call(
            "PUT",
            *("namespaces", self.namespace, "arcs", name),
            inputs=list(map(_stored, inputs)),
            outputs=[made],
            workload={"function": f"{HERE}:{function}"},
            retry={"tries": 1, "backOffSeconds": 0},
        )

    def run_arc(self, name: str, lot: str) -> None:
        plane, worker = self.server.plane, f"{self.namespace} worker"
        with LocalThreads(1) as executor:
            at = (plane.catalog, plane.objects, executor, plane.clock)
            run_lot(*at, self.namespace, name, lot, owner=worker)


def _named(text: str) -> Document:
    namespace, _, name = text.partition("/")
    return {"namespace": namespace, "name": name}


def _stored(text: str) -> Document:
    namespace, _, name = text.partition("/")
    return {"namespace": namespace, "dataset": name}


def _dataset(text: str, *more: str) -> tuple[str, ...]:
    namespace, _, name = text.partition("/")
    return "namespaces", namespace, "datasets", name, *more


@contextmanager
def neighbours(database_url: str, folder: Path) -> Iterator[Neighbours]:
    """Both teams have worked for a while."""
    with Plane.open(Settings(database=database_url)) as plane:
        plane.keys.create("first", KeyRole.ADMIN, who="test")
    with running(database_url, host="0.0.0.0") as server:
        keys = {name: server.key(f"{name} key", KeyRole.ADMIN) for name in ("food", HIDDEN)}
        food = _Team(server, keys["food"], "food")
        hidden = _Team(server, keys[HIDDEN], HIDDEN)
        ours, theirs = _lots(food, hidden)
        _more_lots(food, hidden, ours, theirs)
        _arcs(food, hidden, ours, theirs, folder)
        _runs(food, hidden, ours, theirs)
        _deposits(food, hidden, ours, theirs, folder)
        food.register("food/salt", "last")
        looking = server.key("food reader", KeyRole.READER, "food")
        yield Neighbours(server, looking, ours, theirs)


def _lots(food: _Team, hidden: _Team) -> tuple[dict[str, str], dict[str, str]]:
    """Hidden makes lots of lake/grapes and food/wine, which food reads, and reads food/soup."""
    hidden.wire("hidden press", ["hidden/soil"], ["lake/grapes"])
    hidden.wire("hidden mixer", ["hidden/soil"], ["food/wine"])
    food.wire("cook", ["lake/grapes", "food/wine"], ["food/soup"])
    hidden.wire("hidden eater", ["food/soup"], ["hidden/waste"])
    lots = [str(number) for number in range(1, 8)]
    hidden.register("hidden/soil", *lots)
    for lot in lots[:4]:
        for job in ("hidden press", "hidden mixer"):
            made = hidden.claim(job, lot)
            if lot != "3":
                hidden.end("complete", made)
            else:
                hidden.end("fail", made, error="hidden error")
    for job in ("hidden press", "hidden mixer"):
        live = hidden.claim(job, "5")
        hidden.act(*hidden.job(job, "lots", "6", "hold"))
    for lot in ("1", "2"):
        cooked = food.claim("cook", lot)
        food.end("complete", cooked)
    hidden.end("complete", hidden.claim("hidden eater", "1"))
    eating = hidden.claim("hidden eater", "2")
    told = run_event("told", inputs=[], outputs=[_named("food/wine")])
    told["job"] = _named("food/teller")
    told["run"]["facets"] = {"penstock_lot": {"lot": "5"}}
    post_as(food, told)
    warden = _Team(food.server, food.server.key("warden", KeyRole.ADMIN), "lake")
    warden.hold_lot("lake/grapes", "4")
    ours = {"run": cooked["id"], "claim": cooked["id"]}
    return ours, {"run": live["id"], "claim": eating["id"]}


def _more_lots(food: _Team, hidden: _Team, ours: dict[str, str], theirs: dict[str, str]) -> None:
    """A job of food's that fails and one that runs; a check of hidden's that fails."""
    food.wire("season", ["food/salt"], ["food/broth"])
    food.register("food/salt", "1", "2", "3")
    food.end("fail", food.claim("season", "1"), error="no salt")
    food.claim("season", "2")
    food.end("complete", food.claim("season", "3"))
    checks = {"assertions": [{"assertion": "not_null", "success": False}]}
    output = {**_named("food/wine"), "outputFacets": {"dataQualityAssertions": checks}}
    for kind in ("START", "COMPLETE"):
        event = run_event("hidden checked", eventType=kind, inputs=[], outputs=[output])
        event["run"]["facets"] = {"penstock_lot": {"lot": "checked"}}
        event["job"] = _named("hidden/hidden checker")
        post_as(hidden, event)


def _arcs(
    food: _Team, hidden: _Team, ours: dict[str, str], theirs: dict[str, str], folder: Path
) -> None:
    """Hidden's arc makes food/raw from its own lots and fails one; food's arc reads them."""
    hidden.arc("hidden arc", ["hidden/ticks"], "food/raw", "make")
    food.arc("stew", ["food/raw"], "food/stew", "shout")
    hidden.arc("hidden follower", ["food/stew"], "hidden/more", "shout")
    hidden.register("hidden/ticks", *(DAY.format(hour) for hour in (0, 1, 3, 5)))
    for hour in (0, 1, 3):
        hidden.run_arc("hidden arc", DAY.format(hour))
    food.run_arc("stew", DAY.format(0))
    hidden.run_arc("hidden follower", DAY.format(0))
    for team, name, ids in ((food, "stew", ours), (hidden, "hidden arc", theirs)):
        at = ("namespaces", team.namespace, "arcs", name, "backfills")
        sent = {**BACKFILLED, "all": True}
        ids["backfill"] = team.call("POST", *at, **sent)["backfill"]["id"]
    for team, dataset, ids in ((food, "stew", ours), (hidden, "more", theirs)):
        ids["replay"] = f"replay of {team.namespace}"
        bad = {"namespace": team.namespace, "dataset": dataset, "lot": DAY.format(0)}
        team.call("PUT", "replays", ids["replay"], **bad, why="bad harvest")
    for name in ("food/eggs", "hidden/eggs"):
        arrival = {"location": (folder / name).as_uri(), "pattern": "{lot}"}
        hidden.call("PUT", *_dataset(name, "arrival"), **arrival)


def _runs(food: _Team, hidden: _Team, ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Runs that were reported: hidden's is a child of food's, and writes a dataset of food's."""
    parent = run_event("dag", eventType="COMPLETE")
    post_as(food, parent)
    child = run_event("hidden child", eventType="COMPLETE", inputs=[])
    child["job"] = _named("hidden/hidden job")
    child["run"]["facets"] = {
        "parent": {"run": {"runId": "dag"}, "job": {"namespace": "food", "name": "etl"}},
        "errorMessage": {"message": "hidden error", "programmingLanguage": "hidden"},
    }
    post_as(hidden, child)
    ours["version"] = food.call("GET", *food.job("etl"))["currentVersion"]
    theirs["version"] = hidden.call("GET", *hidden.job("hidden job"))["currentVersion"]


def _deposits(
    food: _Team, hidden: _Team, ours: dict[str, str], theirs: dict[str, str], folder: Path
) -> None:
    """A collection of each team, with a batch that was stored."""
    for team, ids in ((food, ours), (hidden, theirs)):
        name = f"{team.namespace}-things"
        profile = {"namespace": team.namespace, "dataset": "things", "places": [folder.as_uri()]}
        team.call("PUT", "ingest", "collections", name, **profile)
        (folder / name).write_bytes(name.encode())
        sent = {"collection": name, "url": (folder / name).as_uri()}
        ids |= {"collection": name, "batch": team.call("POST", "ingest", "batches", **sent)["id"]}
    with working(food.server):
        for team, ids in ((food, ours), (hidden, theirs)):
            at = "ingest", "batches", ids["batch"]
            until(partial(_is_stored, team, at))
            [job] = team.call("GET", *at, "jobs")["jobs"]
            ids |= {"ingest_job": job["id"], "ark": job["primaryId"]}


def _is_stored(team: _Team, at: tuple[str, ...]) -> bool:
    return bool(team.call("GET", *at)["status"] == "completed")


def post_as(team: _Team, event: Document) -> None:
    """Send an event with the key of a team."""
    answer = team.server.client.post(f"{API}/lineage", json=event, headers=team.key)
    assert answer.status_code == 201, answer.text

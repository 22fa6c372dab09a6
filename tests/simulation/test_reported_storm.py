"""Reported runs, engines and administrators on the same lots: every invariant holds at the end."""

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.errors import PenstockError
from tests.doors.arc_site import MAKE, NAMESPACE, ArcSite, arc, arc_site, while_it_works
from tests.invariants import assert_all_holds
from tests.simulation.test_kill import random_seed

LOTS = ("20261115PT1H00", "20261115PT1H03", "20261115PT1H04")
SIDES = {"make": ("tick", "raw"), "plain": ("tick", "rough"), "shout": ("raw", "loud")}
KINDS = ("START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER")
ARC = {**MAKE, "retry": {"tries": 3, "backOffSeconds": 0}}
FINE = {200, 201, 404, 409, 422}


@pytest.fixture
def site(database_url: str) -> Iterator[ArcSite]:
    with arc_site(database_url) as site:
        yield site


@dataclass
class Storm:
    """Clients of all kinds that change lots in any order."""

    site: ArcSite
    chance: random.Random
    runs: list[str] = field(default_factory=list)
    seconds: int = 1800

    def begin(self) -> None:
        """Declare two arcs, and a plain job that reads the same dataset."""
        self.runs = [str(uuid.UUID(int=self.chance.getrandbits(128))) for _ in range(5)]
        self.declare()
        self.site.register("tick", *LOTS)
        names = ({"namespace": NAMESPACE, "name": name} for name in SIDES["plain"])
        wired = {side: [name] for side, name in zip(("inputs", "outputs"), names, strict=True)}
        self.call("PUT", "jobs", "plain", "wiring", **wired)

    def act(self) -> None:
        """Take a random action. The server may refuse it."""
        acts: list[tuple[int, Callable[[], None]]] = [
            (55, self.report), (20, self.run), (8, self.resubmit), (5, self.enforce),
            (4, self.forget), (5, self.declare), (3, self.claim),
        ]  # fmt: skip
        weights = [weight for weight, _ in acts]
        self.chance.choices([act for _, act in acts], weights)[0]()

    def intruders(self) -> list[str]:
        """Return the workers that hold a lot of an arc's job and are not its engine."""
        locks = self.site.call("GET", "locks")["locks"]
        return [one["owner"] for one in locks if one["job"] == "shout" and one["owner"] != "test"]

    def call(self, method: str, *segments: str, **body: Any) -> Any:
        """Call a path of the namespace. The only allowed errors are refusals with a reason."""
        at = "/".join(("/api/v1/namespaces", NAMESPACE, *segments))
        answer = self.site.server.client.request(method, at, json=body or None)
        assert answer.status_code in FINE, answer.text
        return answer.json()

    def report(self, run: str | None = None) -> None:
        """Report a run: a new one, or one that holds a lot."""
        job = self.chance.choice(list(SIDES))
        lots = self.chance.sample(LOTS, self.chance.choice((0, 1, 1, 2)))
        by_run = bool(lots) and self.chance.random() < 0.6
        facets = {"penstock_lot": {"lot": lots[0]}} if by_run else {}
        self.seconds += self.chance.choice((1, 1, -3))
        event: dict[str, Any] = {
            "eventType": self.chance.choice(KINDS),
            "eventTime": f"2026-11-16T12:{self.seconds // 60:02}:{self.seconds % 60:02}Z",
            "run": {"runId": run or self.chance.choice(self.runs), "facets": facets},
            "job": {"namespace": NAMESPACE, "name": job},
        }
        for side, name in zip(("input", "output"), SIDES[job], strict=True):
            if self.chance.random() < 0.8:
                partitions = {} if by_run else _subset(side, lots)
                event[f"{side}s"] = [{"namespace": NAMESPACE, "name": name, **partitions}]
        answer = self.site.server.client.post("/api/v1/lineage", json=event)
        assert answer.status_code in FINE, answer.text

    def meddle(self) -> None:
        """Report a run that holds a lot at this moment."""
        locks = self.site.call("GET", "locks")["locks"]
        if locks:
            self.report(self.chance.choice(locks)["claim"])

    def fail(self) -> None:
        """Fail, as a broken workload."""
        raise RuntimeError("no luck")

    def run(self) -> None:
        """Make a lot as an engine, while other actions run."""
        acts = (self.meddle, self.meddle, self.report, self.fail)
        while_it_works[:] = self.chance.choices(acts, k=self.chance.choice((0, 1, 2)))
        with suppress(PenstockError):  # no arc now, or the lot is not ready
            self.site.run(self.chance.choice(("make", "make", "shout")), self.chance.choice(LOTS))

    def resubmit(self) -> None:
        """Resubmit a lot as an administrator."""
        job, lot = self.chance.choice(list(SIDES)), self.chance.choice(LOTS)
        self.call("POST", "jobs", job, "resubmit", lots=[lot], why="to see what happens")

    def enforce(self) -> None:
        """Switch the refusal of colliding events on or off."""
        job = self.chance.choice(("make", "plain"))
        self.call("PUT", "jobs", job, "wiring", enforced=self.chance.random() < 0.5)

    def declare(self) -> None:
        """Declare the job as an arc again."""
        self.call("PUT", *arc("make")[2:], **ARC)

    def forget(self) -> None:
        """Make the arc a plain job."""
        self.call("DELETE", *arc("make")[2:])

    def claim(self) -> None:
        """Claim a lot of the plain job, then end the claim or let it expire."""
        for claim in self.call("POST", "jobs", "plain", "claims", owner="worker")["claims"]:
            end = self.chance.choice(("complete", "fail", "heartbeat"))
            at = f"/api/v1/claims/{claim['id']}/{end}"
            error = {"error": "no luck"} if end == "fail" else {}
            answer = self.site.server.client.post(at, json={"token": claim["token"], **error})
            assert answer.status_code in FINE, answer.text


def _subset(side: str, lots: list[str]) -> dict[str, Any]:
    if not lots:
        return {}
    partitions = [{"identifier": lot} for lot in lots]
    condition = {f"{side}Condition": {"type": "partition", "partitions": partitions}}
    return {f"{side}Facets": {"subset": condition}}


def rage(site: ArcSite, seed: int, acts: int) -> None:
    """Take this many random actions, then require that `penstock check` passes."""
    storm = Storm(site, random.Random(seed))
    storm.begin()
    for _ in range(acts):
        storm.act()
        assert storm.intruders() == []
    assert_all_holds(site.server.plane.settings)


@pytest.mark.parametrize("seed", range(3))
def test_invariants_hold_under_any_reports_of_lots(site: ArcSite, seed: int) -> None:
    rage(site, seed, acts=60)


@pytest.mark.stress
@pytest.mark.parametrize("number", range(50))
def test_long_storm_of_reports(site: ArcSite, number: int) -> None:
    rage(site, random_seed() + number, acts=500)

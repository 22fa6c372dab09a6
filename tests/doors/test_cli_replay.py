"""`penstock replays start` and its HTTP calls: planned, carried out, watched, paused, cancelled."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors.local import LocalThreads
from penstock.operations.replays.service import Replays
from penstock.schema.admin import KeyRole
from tests.doors.commands import Outcome, Terminal, go_home
from tests.doors.serving import Running, path, running
from tests.doors.waiting import until

REPLAY = "0199aaaa-0000-7000-8000-000000000004"
OF_CLEAN = ("--dataset", "shop/clean", "--lot", "monday")
DO_IT = ("--yes", "--why", "bad digest", "--id", REPLAY)
FILE = """
namespace = "shop"

[arcs.clean]
inputs = ["raw"]
outputs = ["clean"]
workload = "loads:write"

[arcs.left]
inputs = ["clean"]
outputs = ["left"]
workload = "loads:write"

[arcs.right]
inputs = ["clean"]
outputs = ["right"]
workload = "loads:right"
retry = { tries = 1 }

[arcs.report]
inputs = ["left", "right"]
outputs = ["report"]
workload = "loads:write"
"""
LOADS = '''
from pathlib import Path

def write(context):
    """The name of the lot."""
    context.write("lot.txt", context.lot.encode())

def right(context):
    """The same, unless somebody broke it."""
    if Path("broken").exists():
        raise ValueError("no luck")
    write(context)
'''


@dataclass(frozen=True)
class Here:
    """A server on which two lots went through four arcs."""

    server: Running
    folder: Path
    penstock: Terminal

    @contextmanager
    def station(self) -> Iterator[None]:
        """An engine in this process that moves replays on, while the block lasts."""
        plane = self.server.plane
        steppers = (Replays(plane.catalog, plane.clock).step_all,)
        with LocalThreads(4) as executor:
            at = (plane.catalog, plane.database, plane.objects, executor, plane.clock)
            with ArcWorker(*at, owner="here", concurrency=4, steppers=steppers):
                yield

    def call(self, method: str, *segments: str, status: int = 200, **request: Any) -> Any:
        answer = self.server.client.request(method, path("replays", *segments), **request)
        assert answer.status_code == status, answer.text
        return answer.json()

    def runs(self, lot: str) -> dict[str, str]:
        """The last run of each arc on a lot."""
        at = ("namespaces", "shop", "jobs")
        return {
            arc: self.server.client.get(path(*at, arc, "lots", lot)).json()["claim"]
            for arc in ("clean", "left", "right", "report")
        }


@pytest.fixture
def here(
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Here]:
    (tmp_path / "arcs.toml").write_text(FILE)
    (tmp_path / "loads.py").write_text(LOADS)
    go_home(monkeypatch, tmp_path, columns=120)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "loads", raising=False)
    monkeypatch.setattr("penstock.cli.arcs.replays._LOOK_SECONDS", 0.05)
    with running(database_url) as server:
        monkeypatch.setenv("PENSTOCK_URL", server.server.url)
        site = Here(server, tmp_path, Terminal(capsys))
        assert site.penstock("arcs", "apply", "arcs.toml").code == 0
        assert site.penstock("lots", "register", "shop/raw", "monday", "tuesday").code == 0
        with site.station():
            until(lambda: _done(site.penstock) == 2)
        yield site


def _done(penstock: Terminal) -> int:
    listed = penstock("arcs", "list", "--json").document["arcs"]
    return min(int(each["counts"]["complete"]) for each in listed)


only_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def lines(outcome: Outcome) -> list[str]:
    return [" ".join(line.split()[:4]) for line in outcome.text.splitlines()]


def test_plan_is_a_tree_with_costs(here: Here) -> None:
    before = here.runs("monday")
    planned = here.penstock("replays", "start", *OF_CLEAN)
    assert lines(planned)[:5] == [
        "replay of lot monday",
        "└ ● 1. shop/clean",
        "├ ● 2. shop/left",
        "└ ● 3. shop/right",
        "└ ● 4. shop/report",
    ]
    assert "after 2, 3" in planned.out
    assert "4 steps: 4 to rerun; by past runs" in planned.out
    assert "nothing was started; pass --yes --why REASON" in planned.err
    assert here.runs("monday") == before
    document = here.penstock("replays", "start", *OF_CLEAN, "--dry-run", "--json").document
    assert [step["run"] for step in document["steps"]] == list(before.values())
    assert document["totals"]["steps"] == 4
    assert here.penstock("replays", "list").err.startswith("there are no replays")


def test_replay_runs_affected_work_only(here: Here) -> None:
    monday, tuesday = here.runs("monday"), here.runs("tuesday")
    begun = here.penstock("replays", "start", *OF_CLEAN, *DO_IT)
    assert begun.text.strip() == REPLAY
    assert here.penstock("replays", "start", *OF_CLEAN, *DO_IT).text.strip() == REPLAY
    with here.station():
        watched = here.penstock("replays", "watch", REPLAY)
    assert watched.text == f"replay {REPLAY} is done: 4 done\n"
    assert "running: " in watched.err
    assert here.runs("tuesday") == tuesday
    assert all(here.runs("monday")[arc] != monday[arc] for arc in monday)
    shown = here.penstock("replays", "show", REPLAY)
    assert "started by" in shown.text
    assert shown.text.count("done") >= 5
    assert [each["id"] for each in here.penstock("replays", "list", "--json").document["replays"]]
    told = here.penstock("audit", "--json").document
    [line] = [each for each in told["entries"] if each["action"] == "start replay"]
    assert line["detail"] == f"{REPLAY}: 4 steps: bad digest"


@only_sqlite
def test_failed_step_is_named_and_sets_the_exit_code(here: Here) -> None:
    (here.folder / "broken").touch()
    with here.station():
        watched = here.penstock("replays", "start", *OF_CLEAN, *DO_IT, "--watch", "--json")
    assert watched.code == 3
    found = json.loads(watched.out)
    assert (found["state"], found["done"], found["failed"], found["blocked"]) == ("failed", 2, 1, 1)
    assert [(each["job"], each["lot"]) for each in found["failures"]] == [("right", "monday")]
    again = here.penstock("replays", "watch", REPLAY)
    assert again.code == 3
    assert "step 3 failed, shop/right lot monday: " in again.out
    assert "no luck" in again.out
    blocked = here.penstock("replays", "show", REPLAY, "--state", "blocked").text
    assert "step 3 has failed" in blocked


@only_sqlite
def test_paused_resumed_and_cancelled_by_hand(here: Here) -> None:
    assert here.penstock("replays", "start", *OF_CLEAN, *DO_IT).code == 0
    paused = here.penstock("replays", "pause", REPLAY, "--why", "too much load")
    assert paused.text == f"replay {REPLAY} is paused: 4 pending\n"
    watched = here.penstock("replays", "watch", REPLAY)
    assert (watched.code, watched.err) == (3, "paused: 4 pending\n")
    assert "is running" in here.penstock("replays", "resume", REPLAY, "--why", "quiet").text
    assert "is cancelled" in here.penstock("replays", "cancel", REPLAY, "--why", "wrong").text
    refused = here.penstock("replays", "resume", REPLAY, "--why", "right after all")
    assert "cancelled is final" in refused.complaint


@only_sqlite
def test_who_cancels_is_told_what_is_left_to_the_rule_of_its_job(here: Here) -> None:
    assert here.penstock("replays", "start", *OF_CLEAN, *DO_IT).code == 0
    plane = here.server.plane
    replays = Replays(plane.catalog, plane.clock)
    replays.step(REPLAY)
    here.penstock("replays", "pause", REPLAY, "--why", "too much load")
    with here.station():
        until(lambda: replays.status(REPLAY).done == 1)
    cancelled = here.penstock("replays", "cancel", REPLAY, "--why", "wrong")
    assert "2 of the steps not started were stale at its end" in cancelled.text
    assert "2 of the steps not started were stale" in here.penstock("replays", "show", REPLAY).out


@only_sqlite
def test_a_wrong_replay_is_refused_in_one_line(here: Here) -> None:
    penstock, start = here.penstock, ("replays", "start")
    nothing, none = penstock(*start), penstock(*start, *OF_CLEAN, "--max-running", "0")
    assert "name the bad lots" in nothing.complaint
    assert "--max-running is a number from 1 to 10,000" in none.complaint
    assert (nothing.code, none.code) == (2, 2)
    assert (
        "name the bad lots of the dataset" in penstock(*start, "--dataset", "shop/clean").complaint
    )
    assert "reason with --why" in penstock(*start, *OF_CLEAN, "--yes").complaint
    assert "omit one of them" in penstock(*start, *OF_CLEAN, "--yes", "--dry-run").complaint
    assert "there is no replay" in penstock("replays", "show", "nothing").complaint
    unread = penstock(*start, "--dataset", "shop/report", "--lot", "monday", "--downstream-only")
    assert "there is nothing to do" in unread.text
    assert "pass --any-version" in unread.err


@only_sqlite
def test_target_is_a_job_or_a_range(here: Here) -> None:
    def planned(*arguments: str) -> set[str]:
        steps = here.penstock("replays", "start", *arguments, "--json").document["steps"]
        return {f"{step['job']} {step['lot']}" for step in steps}

    both = {f"{arc} {lot}" for arc in ("right", "report") for lot in ("monday", "tuesday")}
    assert planned("--job", "shop/right") == both
    assert planned("--job", "shop/right", "--from", "1d") == both
    assert planned("--job", "shop/right", "--to", "1d") == set()
    assert planned("--dataset", "shop/right", "--from", "1d", "--downstream-only") == {
        *("report monday", "report tuesday"),
    }


@only_sqlite
def test_roles_limit_replays(here: Here) -> None:
    body = {"namespace": "shop", "dataset": "clean", "lot": "monday", "why": "bad digest"}
    query = {"namespace": "shop", "dataset": "clean", "lot": "monday"}
    reader = here.server.key("reader", KeyRole.READER)
    stranger = here.server.key("stranger", KeyRole.ADMIN, "elsewhere")
    own = here.server.key("own", KeyRole.ADMIN, "shop")
    assert len(here.call("GET", "plan", params=query, headers=reader)["steps"]) == 4
    here.call("GET", "plan", params=query, headers=stranger, status=403)
    here.call("PUT", REPLAY, json=body, headers=reader, status=403)
    here.call("PUT", REPLAY, json=body, headers=stranger, status=403)
    assert here.call("PUT", REPLAY, json=body, headers=own)["steps"] == 4
    here.call("PUT", REPLAY, json=body, headers=stranger, status=403)
    here.call("GET", REPLAY, headers=stranger, status=403)
    assert here.call("GET", headers=stranger)["replays"] == []
    assert len(here.call("GET", headers=own)["replays"]) == 1
    assert len(here.call("GET", REPLAY, "steps", headers=reader)["steps"]) == 4
    here.call("POST", REPLAY, "pause", json={"why": "x"}, headers=stranger, status=403)
    other = {**body, "lot": "tuesday"}
    refusal = here.call("PUT", REPLAY, json=other, headers=own, status=409)
    assert "choose another id" in refusal["message"]
    here.call("PUT", REPLAY, json={**body, "why": ""}, headers=own, status=422)

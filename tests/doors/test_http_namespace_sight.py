"""What a key for one namespace is shown: asked of every route, so that a new one is asked too."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from penstock.schema.admin import KeyRole
from penstock.server.routes.table import ROUTES
from penstock.server.routing import Reach, Route
from tests.doors.neighbours import DAY, HIDDEN, Neighbours, neighbours
from tests.doors.serving import API

LOOKING = [route for route in ROUTES if route.method == "GET" and route.path.startswith(API)]
STREAMS = {f"{API}/events/stream", f"{API}/pulse"}
# What food has or may ask for; of what has an id, food's and hidden's are both asked for.
NAMES: Mapping[str, Sequence[str]] = {
    "namespace": ["food"],
    "dataset": ["soup", "wine", "raw", "stew", "eggs"],
    "job": ["cook", "season", "stew", "etl", "teller"],
    "arc": ["stew"],
    "lot": [*map(str, range(1, 8)), "checked", *(DAY.format(hour) for hour in (0, 1, 3, 5))],
    "version": ["V1"],
    "run": ["dag", "hidden child"],
    "source": ["food"],
}
# What must stand behind the question mark for a route to answer.
ASKED: Mapping[str, Sequence[str]] = {
    f"{API}/replays/plan": [
        "namespace=food&dataset=broth&lot=3",
        "namespace=food&dataset=stew&job=stew",
        "namespace=hidden&dataset=more&lot=1",
    ],
    f"{API}/ingest/objects/versions": ["ark={ours[ark]}", "ark={theirs[ark]}"],
    f"{API}/ingest/objects/files": ["ark={ours[ark]}", "ark={theirs[ark]}"],
}


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Neighbours]:
    with neighbours(database_url, tmp_path) as made:
        yield made


def calls(site: Neighbours, route: Route) -> Iterator[tuple[list[str], str]]:
    """Everything that a route can be asked for, with the target of the call."""
    known = [
        [*NAMES.get(name, ()), *(ids[name] for ids in (site.ours, site.theirs) if name in ids)]
        for name in route.variables
    ]
    for values in product(*known):
        encoded = {
            name: quote(value, safe="") for name, value in zip(route.variables, values, strict=True)
        }
        target = route.path.format_map(encoded)
        for asked in ASKED.get(route.path, [""]):
            query = asked.format(ours=site.ours, theirs=site.theirs)
            yield [*values, *re.findall("=([^&]*)", query)], f"{target}?{query}"


def tells_of_others(site: Neighbours, answer: httpx.Response, named: Sequence[str]) -> bool:
    """Whether an answer tells what hidden does, besides what was named in the call."""
    text = answer.text
    for name in sorted(named, key=len, reverse=True):
        text = text.replace(json.dumps(name)[1:-1], "")
    return HIDDEN in text or site.theirs["run"] in text or site.theirs["claim"] in text


def test_no_route_tells_of_the_jobs_of_others(site: Neighbours) -> None:
    for route in LOOKING:
        if route.path in STREAMS:
            continue
        seen = set()
        for named, target in calls(site, route):
            answer = site.server.client.get(target, headers=site.key)
            assert not tells_of_others(site, answer, named), (target, answer.text)
            seen.add(answer.status_code)
        assert seen <= {200, 403, 404, 422}, (route.name, seen)
        # Otherwise the scene has nothing that this route shows, and proves nothing.
        assert (200 in seen) is (route.reach is not Reach.EVERYTHING), (route.name, seen)


def test_what_others_began_since_leaves_no_less_of_a_list(site: Neighbours) -> None:
    """Hidden's replay and backfill are newer than food's."""
    for what in ("replays", "backfills"):
        answer = site.server.client.get(f"{API}/{what}?limit=1", headers=site.key)
        assert [each["namespace"] for each in answer.json()[what]] == ["food"]


def test_the_stream_tells_what_happened_to_own_lots_and_not_who_did_it(site: Neighbours) -> None:
    client, target = site.server.client, f"{API}/events/stream?after=0"
    with client.stream("GET", target, headers=site.key) as answer:
        lines = answer.iter_lines()
        told: list[dict[str, Any]] = []
        while not told or told[-1]["lot"] != "last":
            told += [json.loads(line[6:]) for line in lines_of_one(lines) if line[:5] == "data:"]
    assert {event["dataset"]["namespace"] for event in told} == {"food"}
    assert HIDDEN not in json.dumps(told)
    makers = {event["dataset"]["name"]: event["job"] for event in told}
    assert makers["raw"] is None
    assert makers["soup"] == {"namespace": "food", "name": "cook"}


def lines_of_one(lines: Iterator[str]) -> list[str]:
    """The lines up to the next empty one."""
    return list(iter(lambda: next(lines), ""))


def test_what_is_found_elsewhere_is_neither_changed_nor_told_of(site: Neighbours) -> None:
    """Calls that change something, on what an id of hidden's leads to."""
    own = site.server.key("food boss", KeyRole.ADMIN, "food")
    named = {"namespace": "food", "dataset": "things", "lot": "1"}
    said = {"why": "x", "token": 1, "priority": 1, **named}
    for route in ROUTES:
        if route.method == "GET" or not set(route.variables) & set(site.theirs):
            continue
        values = {name: quote(site.theirs.get(name, "food"), safe="") for name in route.variables}
        target = route.path.format_map(values)
        shape = route.hints.get("body")
        known = {field.encode_name for field in msgspec.structs.fields(shape)} if shape else set()
        body = {name: value for name, value in said.items() if name in known}
        answer = site.server.client.request(route.method, target, json=body, headers=own)
        # Below the path of a job of food's, a run of another is not there.
        expected = {403} if "namespace" not in route.variables else {403, 404, 409}
        assert answer.status_code in expected, (route.name, answer.text)
        assert not tells_of_others(site, answer, list(site.theirs.values())), answer.text

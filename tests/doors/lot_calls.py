"""Calls over HTTP about lots and claims in namespace shop."""

from typing import Any

from tests.doors.serving import Running, path


def named(dataset: str) -> dict[str, str]:
    return {"namespace": "shop", "name": dataset}


def act(server: Running, target: str, **body: Any) -> Any:
    """Post, and return the answer."""
    answer = server.client.post(target, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def look(server: Running, target: str) -> Any:
    """Get, and return the answer."""
    answer = server.client.get(target)
    assert answer.status_code == 200, answer.text
    return answer.json()


def claim(server: Running, job: str, lot: str = "1") -> Any:
    [claimed] = act(server, f"{job}/claims", owner="w1", lots=[lot])["claims"]
    return claimed


def complete(server: Running, job: str, lot: str = "1") -> None:
    claimed = claim(server, job, lot)
    act(server, path("claims", claimed["id"], "complete"), token=claimed["token"])


def fail(server: Running, job: str, lot: str = "1", error: str = "disk full") -> None:
    claimed = claim(server, job, lot)
    act(server, path("claims", claimed["id"], "fail"), token=claimed["token"], error=error)

"""A worker in a separate process, to be killed: it claims lots, works on them and ends them.

The script needs only the standard library, so that it starts at once. Before each change of a claim
it writes the change to its journal, and afterwards the result.
"""

import http.client
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

IDLE_SECONDS = 0.05
CALL_SECONDS_MAX = 300
BASE = "/api/v1"

Document = dict[str, Any]


class Journal:
    """A file whose lines survive a kill of the process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, what: str, claim: Document, **more: Any) -> None:
        """Write a line about a claim."""
        entry = {"what": what, "claim": claim["id"], "token": claim["token"]}
        entry |= {"job": claim["job"], "lot": claim["lot"]}
        os.write(self._file, json.dumps(entry | more).encode() + b"\n")


class Server:
    """One of several servers, over one connection."""

    def __init__(self, hosts: list[str], chance: random.Random) -> None:
        self._hosts = hosts
        self._chance = chance
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(
            self._chance.choice(self._hosts), timeout=CALL_SECONDS_MAX
        )

    def post(self, path: str, body: Document) -> tuple[int | None, Any]:
        """Return the status and the document, or no status if there was no answer."""
        headers = {"Content-Type": "application/json"}
        try:
            self._connection.request("POST", BASE + path, json.dumps(body), headers)
            answer = self._connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (http.client.HTTPException, ConnectionError):
            # The server closes the connection of a worker that was stopped for long.
            self._connection.close()
            self._connection = self._connect()
            return None, None


class Worker:
    """Works on lots of any of its jobs until it is killed."""

    def __init__(self, settings: Document) -> None:
        self._owner: str = settings["owner"]
        self._chance = random.Random(settings["seed"])
        self._server = Server(settings["hosts"], self._chance)
        self._journal = Journal(settings["journal"])
        self._jobs: list[str] = settings["jobs"]
        self._namespace: str = settings["namespace"]
        self._lease_seconds: int = settings["lease_seconds"]
        self._work_seconds: float = settings["work_seconds"]
        self._at_once: int = settings["at_once"]

    def run(self) -> None:
        """Claim, work and end, without end."""
        claims: list[Document] = []
        while True:
            claims = claims or self._claim()
            if not claims:
                time.sleep(IDLE_SECONDS)
                continue
            how = self._chance.choice([self._end_each, self._end_together, self._go_on])
            claims = how(claims)

    def _claim(self, complete: Sequence[Document] = ()) -> list[Document]:
        job = quote(self._chance.choice(self._jobs), safe="")
        body = {
            "owner": self._owner,
            "count": self._chance.randint(1, self._at_once),
            "order": self._chance.choice(["oldest", "oldest", "newest"]),
            "leaseSeconds": self._lease_seconds,
            "complete": _refs(complete),
        }
        status, answer = self._server.post(f"/namespaces/{self._namespace}/jobs/{job}/claims", body)
        self._note_each(complete, status, answer)
        if status is None:
            return []
        assert status == 200, answer
        claims: list[Document] = answer["claims"]
        for claim in claims:
            self._journal.write("claimed", claim, inputs=claim["inputs"])
        return claims

    def _work(self, claim: Document) -> None:
        time.sleep(self._chance.random() * self._work_seconds)
        if self._chance.random() < 0.2:
            body = {"token": claim["token"]}
            status, answer = self._server.post(f"/claims/{claim['id']}/heartbeat", body)
            assert status in (200, 409, None), answer

    def _end(self, claim: Document) -> None:
        end = self._chance.choices(["complete", "fail", "release"], [94, 4, 2])[0]
        self._journal.write(end, claim)
        status, answer = self._server.post(
            f"/claims/{claim['id']}/{end}", {"token": claim["token"]}
        )
        assert status in (200, 409, None), answer
        self._note(claim, end, status, answer)

    def _note(self, claim: Document, end: str, status: int | None, answer: Any) -> None:
        if status is None:
            self._journal.write("unanswered", claim)
        elif status == 200:
            self._journal.write(f"{end} done", claim, versions=answer.get("versions"))
        else:
            self._journal.write(f"{end} refused", claim, why=str(answer))

    def _end_each(self, claims: list[Document]) -> list[Document]:
        for claim in claims:
            self._work(claim)
            self._end(claim)
        return []

    def _end_together(self, claims: list[Document]) -> list[Document]:
        self._work(claims[-1])
        for claim in claims:
            self._journal.write("complete", claim)
        status, answer = self._server.post("/claims/complete", {"claims": _refs(claims)})
        assert status in (200, None), answer
        self._note_each(claims, status, answer)
        return []

    def _go_on(self, claims: list[Document]) -> list[Document]:
        """Complete claims with the call that claims the next ones."""
        self._work(claims[-1])
        for claim in claims:
            self._journal.write("complete", claim)
        return self._claim(claims)

    def _note_each(self, claims: Sequence[Document], status: int | None, answer: Any) -> None:
        ended = answer["ended"] if status == 200 else [None] * len(claims)
        for claim, end in zip(claims, ended, strict=True):
            each = status if end is None or end["error"] is None else 409
            self._note(claim, "complete", each, end)


def _refs(claims: Sequence[Document]) -> list[Document]:
    return [{"id": claim["id"], "token": claim["token"]} for claim in claims]


if __name__ == "__main__":
    Worker(json.loads(sys.argv[1])).run()

"""A desk to fetch files at: a real server, a client that may reach it, and a folder."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.errors import PenstockError
from penstock.ingest.intake.fetching import FetchedFile, FileRequest, fetch
from penstock.ingest.intake.outbound import open_client
from penstock.ingest.intake.places import Places
from tests.web import Web

BODY = bytes(range(256)) * 4096
OTHER = BODY[::-1]


def digest(data: bytes, algorithm: str = "sha256") -> str:
    return hashlib.new(algorithm, data).hexdigest()


class IngestService:
    """A server, a client that may reach it, a folder, and a clock that only counts."""

    def __init__(self, web: Web, client: httpx.Client, places: Places, folder: Path) -> None:
        self.web, self.client, self.places, self.folder = web, client, places, folder
        self.slept: list[float] = []
        self.at_hand = 0

    def fetch(self, url: str, name: str = "a.bin", **options: Any) -> FetchedFile:
        wanted = {key: options.pop(key) for key in ("digest", "size") if key in options}
        algorithm = options.pop("algorithm", "sha-256" if "digest" in wanted else None)
        return fetch(
            self.client,
            FileRequest(url, name, algorithm, **wanted),
            self.folder,
            **{"places": self.places, "sleep": self.slept.append, "progress": self.add, **options},
        )

    def add(self, change: int) -> None:
        self.at_hand += change

    def content(self, name: str = "a.bin") -> bytes:
        return (self.folder / name).read_bytes()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob("*"))

    def ranges(self, path: str) -> list[str | None]:
        return [request.headers.get("range") for request in self.web.requests_to(path)]

    def refused(self, kind: type[PenstockError], url: str, **options: Any) -> str:
        with pytest.raises(kind) as refused:
            self.fetch(url, **options)
        assert self.names() == []
        assert url.partition("?")[0] in str(refused.value)
        return str(refused.value)

    def parts(self) -> list[Path]:
        """What is kept of files that have not come whole."""
        folder = self.folder.parent / ".producer.parts"
        return [path for path in folder.iterdir() if not path.suffix]


@contextmanager
def open_desk(folder: Path, *, timeout_seconds: float = 5.0) -> Iterator[IngestService]:
    """A desk whose collection may reach its server, `in` beside its folder, and one bucket."""
    (folder / "producer").mkdir()
    with Web() as web:
        places = Places((web.url, f"file://{folder}/in", "s3://bucket/in"))
        with open_client(places, timeout_seconds=timeout_seconds) as client:
            yield IngestService(web, client, places, folder / "producer")

"""The events of the benchmarks: about 2 KB, two inputs, one output, schemas."""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from penstock.clock import Micros, format_time

JOBS = 500
DATASETS = 1000
PATH = "/api/v1/lineage"
_PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/integration/spark"
_SPEC = "https://openlineage.io/spec"
_NAMESPACES = ("postgres://warehouse:5432", "s3://lake")
_COLUMNS = (
    ("id", "bigint"), ("customer_id", "bigint"), ("created_at", "timestamp"),
    ("amount", "numeric(18,2)"), ("currency", "varchar(3)"), ("status", "varchar(32)"),
    ("country", "varchar(2)"), ("updated_at", "timestamp"),
)  # fmt: skip
_TYPE, _TIME, _RUN = "@TYPE@", "@TIME@", "@RUN@"


@dataclass(frozen=True)
class Template:
    """The request of one job, cut around run, type and time."""

    start: tuple[bytes, bytes, bytes]
    complete: tuple[bytes, bytes, bytes]


class EventPool:
    """An endless sequence of requests, each with its own run and time; reproducible."""

    def __init__(self, begin: Micros, seed: int = 7) -> None:
        self._random = random.Random(seed)
        # Never a whole millisecond, so that every time has the same length.
        self._at = begin // 1000 * 1000 + 1
        self._templates = [_template(self._random, job) for job in range(JOBS)]
        self._stream = self._requests()

    def take(self, count: int) -> list[bytes]:
        """Return the next requests: all jobs start, then all complete, and so on."""
        return list(islice(self._stream, count))

    def _requests(self) -> Iterator[bytes]:
        while True:
            texts = [str(self._run_id()).encode() for _ in range(JOBS)]
            for template, run in zip(self._templates, texts, strict=True):
                yield self._request(template.start, run)
            for template, run in zip(self._templates, texts, strict=True):
                yield self._request(template.complete, run)

    def _run_id(self) -> uuid.UUID:
        """Return a version 7 id, as OpenLineage's clients create them: ordered by time."""
        chance = self._random.getrandbits(80) & ~(0xF << 76 | 0b11 << 62)
        return uuid.UUID(int=self._at // 1000 << 80 | 7 << 76 | 0b10 << 62 | chance)

    def _request(self, parts: tuple[bytes, bytes, bytes], run: bytes) -> bytes:
        self._at += 1000
        head, middle, tail = parts
        return b"".join((head, format_time(self._at).encode(), middle, run, tail))


def body_of(request: bytes) -> bytes:
    """Return the event in a request."""
    return request.partition(b"\r\n\r\n")[2]


def _template(choice: random.Random, job: int) -> Template:
    # Each job writes a dataset of its own; half of the inputs come from outside.
    others = [number for number in range(DATASETS) if number != job]
    inputs = [_dataset(number) for number in choice.sample(others, 2)]
    event = {
        "eventTime": _TIME,
        "eventType": _TYPE,
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": _RUN, "facets": {"processing_engine": _engine()}},
        "job": {
            "namespace": "nightly",
            "name": f"warehouse.layer_{job % 7}.load_table_{job:04}",
            "facets": {"jobType": _job_type()},
        },
        "inputs": inputs,
        "outputs": [_dataset(job)],
    }
    text = msgspec.json.encode(event).decode()
    return Template(_cut(text, "START"), _cut(text, "COMPLETE"))


def _cut(text: str, event_type: str) -> tuple[bytes, bytes, bytes]:
    """Cut a whole request in three; times and runs have a fixed length."""
    text = text.replace(_TYPE, event_type)
    head, _, rest = text.partition(_TIME)
    middle, _, tail = rest.partition(_RUN)
    length = len((head + middle + tail).encode()) + len("2026-01-01T00:00:00.000001Z") + 36
    lines = (
        f"POST {PATH} HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/json",
        f"content-length: {length}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + head).encode(), middle.encode(), tail.encode()


def _dataset(number: int) -> dict[str, Any]:
    """Return a dataset as every job names it."""
    columns = random.Random(number).sample(_COLUMNS, 4)
    fields = [{"name": name, "type": kind} for name, kind in columns]
    schema = {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_SPEC}/facets/1-1-1/SchemaDatasetFacet.json",
        "fields": fields,
    }
    return {
        "namespace": _NAMESPACES[number % 2],
        "name": f"analytics.mart_{number % 31}.table_{number:05}",
        "facets": {"schema": schema},
    }


def _engine() -> dict[str, Any]:
    return {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_SPEC}/facets/1-1-1/ProcessingEngineRunFacet.json",
        "version": "3.5.1",
        "name": "spark",
    }


def _job_type() -> dict[str, Any]:
    return {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_SPEC}/facets/2-0-3/JobTypeJobFacet.json",
        "processingType": "BATCH",
        "integration": "SPARK",
        "jobType": "JOB",
    }

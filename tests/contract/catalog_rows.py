"""Rows of the catalog for tests, with defaults for the columns that a test leaves out."""

import msgspec

from penstock import ids
from penstock.catalog.events.schema import read_schema
from penstock.catalog.queries.search import search_body
from penstock.catalog.rows import (
    DatasetRow,
    EdgeRow,
    EventRow,
    JobRow,
    JobVersionRow,
    Origin,
    RunDatasetRow,
    RunRow,
    SearchRow,
    VersionRow,
)
from penstock.clock import HOUR, Micros, parse_time
from penstock.db import Transaction
from penstock.schema.catalog import DatasetRole
from penstock.states import RUN, RunState

NOW: Micros = parse_time("2026-11-15T09:30:00Z")
NAMESPACE = "s3://shop"


class Tally(msgspec.Struct, frozen=True):
    """How many visible datasets or jobs a namespace has."""

    kind: str
    namespace: str
    state: str
    total: int


class EventCount(msgspec.Struct, frozen=True):
    """How many events of a type there were in an hour."""

    hour: Micros
    event_type: str
    total: int


def dataset(name: str, namespace: str = NAMESPACE, **values: object) -> DatasetRow:
    """Return a dataset without any version."""
    row = DatasetRow(
        id=ids.dataset_id(namespace, name),
        namespace=namespace,
        name=name,
        type="DB_TABLE",
        physical_name=name,
        source_name="warehouse",
        description=None,
        description_stamp=0,
        current_version_id=None,
        published_at=None,
        latest_version_id=None,
        latest_number=0,
        version_count=0,
        implied_version_id=None,
        observed="{}",
        tags="[]",
        field_tags="{}",
        lifecycle="",
        hidden=0,
        hidden_at=0,
        created_at=NOW,
        updated_at=NOW,
    )
    return msgspec.structs.replace(row, **values)


def version(of: DatasetRow, number: int, run: RunRow | None = None, **values: object) -> VersionRow:
    """Return a version with one field, written by a run or declared."""
    fields, schema = read_schema(b'{"fields": [{"name": "id", "type": "INT"}]}')
    row = VersionRow(
        id=ids.derived_id("version", of.id, str(number)),
        dataset_id=of.id,
        number=number,
        origin=Origin.DECLARED if run is None else Origin.RUN,
        run_id=None if run is None else run.id,
        schema_id=schema,
        fields=fields,
        facets="{}",
        stamps="{}",
        type=of.type,
        physical_name=of.physical_name,
        source_name=of.source_name,
        description=of.description,
        lifecycle="",
        column_set_id=None,
        created_at=NOW,
        published_at=NOW,
    )
    return msgspec.structs.replace(row, **values)


def job(name: str, namespace: str = NAMESPACE, **values: object) -> JobRow:
    """Return a job that never ran."""
    row = JobRow(
        id=ids.job_id(namespace, name),
        namespace=namespace,
        name=name,
        type="BATCH",
        type_stamp=0,
        description=None,
        description_stamp=0,
        location=None,
        location_stamp=0,
        parent_job_id=None,
        parent_stamp=0,
        current_version_id=None,
        version_at=0,
        latest_run_id=None,
        latest_run_at=None,
        latest_run_state="",
        run_count=0,
        version_count=0,
        tags="[]",
        labels="[]",
        facets="{}",
        stamps="{}",
        hidden=0,
        hidden_at=0,
        created_at=NOW,
        updated_at=NOW,
    )
    return msgspec.structs.replace(row, **values)


def job_version(of: JobRow, inputs: str = "[]", **values: object) -> JobVersionRow:
    """Return the only shape of a job. `inputs` is a JSON list of names."""
    row = JobVersionRow(
        id=ids.derived_id("shape", of.id),
        job_id=of.id,
        location=None,
        inputs=inputs,
        outputs="[]",
        latest_run_id=None,
        created_at=NOW,
        declared_at=None,
    )
    return msgspec.structs.replace(row, **values)


def run(of: JobRow, number: int, state: RunState = RunState.COMPLETED, **values: object) -> RunRow:
    """Return a run that began this many seconds after NOW and took one second."""
    began = NOW + number * 1_000_000
    row = RunRow(
        id=ids.derived_id("run", of.id, str(number)),
        external_id=None,
        job_id=of.id,
        job_version_id=None,
        parent_run_id=None,
        state=state,
        nominal_start=None,
        nominal_end=None,
        args="{}",
        started_at=None if state is RunState.NEW else began,
        ended_at=began + 1_000_000 if state in RUN.terminal else None,
        facets="{}",
        job_facets="{}",
        stamps="{}",
        created_at=began,
        updated_at=began,
    )
    return msgspec.structs.replace(row, **values)


def touched(by: RunRow, role: DatasetRole, what: VersionRow, facets: str = "{}") -> RunDatasetRow:
    """Return the record that a run read or wrote a version."""
    return RunDatasetRow(by.id, role, what.dataset_id, what.id, facets, "{}")


def edge(of: JobRow, role: DatasetRole, what: DatasetRow, *, current: bool = True) -> EdgeRow:
    """Return the edge of a job that reads or writes a dataset."""
    return EdgeRow(of.id, role, what.id, int(current), NOW)


def event(at: Micros, event_type: str = "START", run_id: str | None = None) -> EventRow:
    """Return an event whose payload has only a time."""
    return EventRow(at, at, "RUN", "food", event_type, run_id, f'{{"at": {at}}}')


def search_row(of: DatasetRow | JobRow, fields_json: str = "[]") -> SearchRow:
    """Return the search words and the shown text of a dataset or job."""
    kind = "DATASET" if isinstance(of, DatasetRow) else "JOB"
    body = search_body(of.namespace, of.name, of.description, fields_json, of.tags)
    return SearchRow(of.id, kind, of.namespace, of.name, of.hidden, body)


def put_events(tx: Transaction, events: list[EventRow]) -> None:
    """Write events and count them by the hour."""
    tx.write("put_events", events)
    counts: dict[tuple[Micros, str], int] = {}
    for row in events:
        key = (row.event_time - row.event_time % HOUR, row.event_type)
        counts[key] = counts.get(key, 0) + 1
    tx.write("add_event_counts", [EventCount(*key, total) for key, total in counts.items()])

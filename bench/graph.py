"""A catalog of full size: layered pipelines, written straight into the tables.

Each domain is the pipeline of a team with 20 layers of 50 jobs. A job reads two datasets of the
layer before, mostly near its own place and sometimes in another domain, and writes one. A hundred
domains are 100,000 jobs, 100,000 datasets and 300,000 edges.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.events import EventPool, body_of
from penstock.catalog.events.schema import read_schema
from penstock.catalog.rows import (
    DatasetRow,
    EdgeRow,
    EventRow,
    JobRow,
    JobVersionRow,
    NamespaceRow,
    RunDatasetRow,
    RunRow,
    SearchRow,
    SourceRow,
    TagRow,
    VersionRow,
    replace,
)
from penstock.db import Database
from penstock.schema.catalog import DatasetRole
from penstock.states import RunState
from tests.contract import catalog_rows as rows

FOLDER = Path(__file__).resolve().parent
LAYERS = 20
WIDTH = 50
JOBS = LAYERS * WIDTH  # per domain, and as many datasets
REACH = 2  # maximum distance of an input from the job's place
ABROAD = 0.006  # probability of an input in another domain
HOT_LENGTH = 1000  # runs of one job, and versions of its output
TAGS = 200
SUBJECTS = (
    "orders", "customers", "payments", "shipments", "returns", "invoices", "sessions", "clicks",
    "products", "prices", "stock", "suppliers", "campaigns", "refunds", "tickets", "reviews",
)  # fmt: skip
COLUMNS = ("id", "customer_id", "created_at", "amount", "currency", "status", "country")

Place = tuple[int, int, int]  # domain, layer, position


def dataset_name(place: Place) -> tuple[str, str]:
    """Return the namespace and name of the dataset at a place."""
    domain, layer, position = place
    subject = SUBJECTS[(domain + position) % len(SUBJECTS)]
    return f"postgres://domain-{domain:03}:5432", f"layer_{layer:02}.{subject}_{position:02}"


def job_name(place: Place) -> tuple[str, str]:
    """Return the namespace and name of the job at a place."""
    domain, layer, position = place
    subject = SUBJECTS[(domain + position) % len(SUBJECTS)]
    return f"domain-{domain:03}", f"layer_{layer:02}.load_{subject}_{position:02}"


def random_places(count: int, domains: int, seed: int = 11) -> list[Place]:
    """Return random places with both a job and a dataset."""
    choice = random.Random(seed)
    return [
        (choice.randrange(domains), choice.randrange(1, LAYERS), choice.randrange(WIDTH))
        for _ in range(count)
    ]


@dataclass
class Tables:
    """Rows to write together, by statement."""

    namespaces: list[NamespaceRow] = field(default_factory=list)
    sources: list[SourceRow] = field(default_factory=list)
    tags: list[TagRow] = field(default_factory=list)
    datasets: list[DatasetRow] = field(default_factory=list)
    versions: list[VersionRow] = field(default_factory=list)
    jobs: list[JobRow] = field(default_factory=list)
    job_versions: list[JobVersionRow] = field(default_factory=list)
    runs: list[RunRow] = field(default_factory=list)
    run_datasets: list[RunDatasetRow] = field(default_factory=list)
    edges: list[EdgeRow] = field(default_factory=list)
    search_docs: list[SearchRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)

    def save(self, database: Database) -> None:
        """Write and commit all rows and their counts."""
        with database.write() as tx:
            for table, written in vars(self).items():
                if table != "events":
                    tx.write(f"put_{table}", written)
            rows.put_events(tx, self.events)
            tx.write("add_tallies", list(self._tallies()))

    def _tallies(self) -> Iterator[rows.Tally]:
        totals: dict[tuple[str, str, str], int] = {}
        keys = [("DATASET", row.namespace, "") for row in self.datasets]
        keys += [("JOB", row.namespace, row.latest_run_state) for row in self.jobs]
        for key in keys:
            totals[key] = totals.get(key, 0) + 1
        return (rows.Tally(*key, total) for key, total in totals.items())


class Graph:
    """Writes the domains one by one; the rows are reproducible."""

    def __init__(self, domains: int, seed: int = 7) -> None:
        self._domains = domains
        self._random = random.Random(seed)
        self._events = EventPool(rows.NOW)

    def save(self, database: Database) -> None:
        """Fill an empty database."""
        tags = [TagRow(f"tag_{number:03}", None) for number in range(TAGS)]
        Tables(tags=tags).save(database)
        for domain in range(self._domains):
            self._domain(domain).save(database)

    def _domain(self, domain: int) -> Tables:
        tables = Tables()
        for namespace in (dataset_name((domain, 0, 0))[0], job_name((domain, 0, 0))[0]):
            row = NamespaceRow(namespace, "bench", None, 0, rows.NOW, rows.NOW)
            tables.namespaces.append(row)
        source = dataset_name((domain, 0, 0))[0]
        tables.sources.append(SourceRow(source, "POSTGRESQL", source, None, rows.NOW, rows.NOW))
        places = [(domain, layer, at) for layer in range(LAYERS) for at in range(WIDTH)]
        for place in places:
            self._add_dataset(tables, place)
        for _, layer, at in places:
            self._add_job(tables, (domain, layer + 1, at))
        if domain == 0:
            self._heat(tables)
        return tables

    def _add_dataset(self, tables: Tables, place: Place) -> None:
        namespace, name = dataset_name(place)
        schema = self._schema()
        fields, schema_id = read_schema(schema)
        tags = msgspec.json.encode([f"tag_{self._random.randrange(TAGS):03}"]).decode()
        dataset = rows.dataset(name, namespace, source_name=namespace, tags=tags)
        version = rows.version(
            dataset,
            1,
            fields=fields,
            schema_id=schema_id,
            facets=f'{{"schema":{schema.decode()}}}',
        )
        dataset = replace(
            dataset,
            current_version_id=version.id,
            published_at=version.published_at,
            latest_version_id=version.id,
            latest_number=1,
            version_count=1,
        )
        tables.datasets.append(dataset)
        tables.versions.append(version)
        tables.search_docs.append(rows.search_row(dataset, fields))

    def _schema(self) -> bytes:
        names = self._random.sample(COLUMNS, 5)
        fields = [{"name": name, "type": "varchar(64)", "description": None} for name in names]
        return msgspec.json.encode({"_producer": "https://bench", "fields": fields})

    def _add_job(self, tables: Tables, place: Place) -> None:
        namespace, name = job_name(place)
        inputs = sorted(dataset_name(found) for found in self._inputs(place))
        output = dataset_name(_output(place))
        state = self._random.choice((RunState.COMPLETED,) * 8 + (RunState.FAILED, RunState.RUNNING))
        number = len(tables.jobs) + place[0] * JOBS
        job = rows.job(name, namespace)
        run = rows.run(job, number, state, facets=_RUN_FACETS, job_facets=_JOB_FACETS)
        shape = rows.job_version(
            job, _names(inputs), outputs=_names([output]), latest_run_id=run.id
        )
        run = replace(run, job_version_id=shape.id)
        job = replace(
            job,
            current_version_id=shape.id,
            latest_run_id=run.id,
            latest_run_at=run.created_at,
            latest_run_state=state,
            run_count=1,
            version_count=1,
            updated_at=run.updated_at,
        )
        tables.jobs.append(job)
        tables.job_versions.append(shape)
        tables.runs.append(run)
        for role, names in ((DatasetRole.INPUT, inputs), (DatasetRole.OUTPUT, [output])):
            for namespace, name in names:
                dataset = rows.dataset(name, namespace)
                tables.edges.append(rows.edge(job, role, dataset))
                tables.run_datasets.append(rows.touched(run, role, rows.version(dataset, 1)))
        tables.search_docs.append(rows.search_row(job))
        payload = body_of(self._events.take(1)[0]).decode()
        event = rows.event(run.created_at, "COMPLETE", run.id)
        tables.events.append(replace(event, payload=payload))

    def _inputs(self, place: Place) -> set[Place]:
        domain, layer, position = place
        found: set[Place] = set()
        while len(found) < 2:
            abroad = self._random.random() < ABROAD
            from_domain = self._random.randrange(self._domains) if abroad else domain
            step = self._random.randint(-REACH, REACH)
            found.add((from_domain, layer - 1, (position + step) % WIDTH))
        return found

    def _heat(self, tables: Tables) -> None:
        """Give the first job many runs, and its output as many versions."""
        job, output = tables.jobs[0], _output((0, 1, 0))
        at = next(i for i, row in enumerate(tables.datasets) if _is_at(row, output))
        dataset, first = tables.datasets[at], tables.versions[at]
        for number in range(2, HOT_LENGTH + 2):
            run = rows.run(job, JOBS * self._domains + number, facets=_RUN_FACETS)
            run = replace(run, job_version_id=job.current_version_id)
            version = rows.version(
                dataset, number, run, fields=first.fields, schema_id=first.schema_id,
                facets=first.facets,
            )  # fmt: skip
            tables.runs.append(run)
            tables.versions.append(version)
            tables.run_datasets.append(rows.touched(run, DatasetRole.OUTPUT, version))
        tables.jobs[0] = replace(
            job,
            latest_run_id=run.id,
            latest_run_at=run.created_at,
            latest_run_state=run.state,
            run_count=HOT_LENGTH + 1,
        )
        tables.datasets[at] = replace(
            dataset,
            current_version_id=version.id,
            latest_version_id=version.id,
            latest_number=version.number,
            version_count=version.number,
        )


_RUN_FACETS = '{"processing_engine":{"_producer":"https://bench","version":"3.5.1","name":"spark"}}'
_JOB_FACETS = '{"jobType":{"_producer":"https://bench","processingType":"BATCH"}}'


def _output(place: Place) -> Place:
    """Return the output of a job; the last layer rewrites the output of the layer before."""
    domain, layer, position = place
    return domain, min(layer, LAYERS - 1), position


def _is_at(row: DatasetRow, place: Place) -> bool:
    return (row.namespace, row.name) == dataset_name(place)


def _names(names: list[tuple[str, str]]) -> str:
    return msgspec.json.encode(
        [{"namespace": namespace, "name": name} for namespace, name in names]
    ).decode()

"""Commands that declare, tag and delete datasets."""

from typing import ClassVar

import msgspec

from penstock import ids
from penstock.catalog.commands.lookup import (
    Write,
    check_field,
    dataset_row,
    namespace_row,
    record,
    run_row,
)
from penstock.catalog.entities import datasets, runs
from penstock.catalog.entities import names as dataset_names
from penstock.catalog.events.facets import event_stamp, mark_stated
from penstock.catalog.events.known_facets import TagMark
from penstock.catalog.events.schema import Field, schema_id
from penstock.catalog.rows import DatasetRow, Origin, RunRow, StreamSchemaRow, VersionRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, NotFound
from penstock.schema.catalog import DatasetRole


class PutDataset(Write, frozen=True):
    """Declare a dataset; with a run id, as an output of that run."""

    namespace: str
    name: str
    type: str
    physical_name: str
    source_name: str
    fields: tuple[Field, ...] | None
    tags: tuple[str, ...]
    description: str | None
    run_id: str | None
    schema_location: str | None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write the dataset, and a version if the declaration makes one."""
        namespace_row(uow, self.namespace)
        if uow.sources.get(self.source_name) is None:
            raise NotFound(f"there is no source {self.source_name!r}; create it first")
        run = run_row(uow, self.run_id) if self.run_id is not None else None
        dataset_id = uow.dataset_id(ids.dataset_id(self.namespace, self.name))
        former = uow.datasets.get(dataset_id)
        if former is not None:
            now = datasets.next_change(former, now)
        dataset = self._stated(uow, dataset_id, former, now)
        dataset_names.show_namespace(uow, dataset.namespace)
        uow.datasets.put(dataset.id, dataset)
        if self.schema_location is not None:
            uow.stream_schemas.put(dataset.id, StreamSchemaRow(dataset.id, self.schema_location))
        if run is not None:
            self._write_for_run(uow, dataset, run, now)
        else:
            self._declare(uow, dataset, now)

    def _stated(
        self, uow: UnitOfWork, dataset_id: str, held: DatasetRow | None, now: Micros
    ) -> DatasetRow:
        dataset = held or dataset_names.new_dataset(
            dataset_id, self.namespace, self.name, self.source_name, now
        )
        dataset = replace(
            dataset,
            type=self.type,
            physical_name=self.physical_name,
            source_name=self.source_name,
            description=self.description if self.description is not None else dataset.description,
            description_stamp=event_stamp(now, ""),
            hidden=0,
            updated_at=max(now, dataset.updated_at),
        )
        marks = [TagMark(tag, None) for tag in self.tags]
        marks += [TagMark(tag, field.name) for field in self.fields or () for tag in field.tags]
        return dataset_names.tag_dataset(uow, dataset, marks) if marks else dataset

    def _schema(self) -> tuple[str, str] | None:
        if self.fields is None:
            return None
        bare = [msgspec.structs.replace(field, tags=()) for field in self.fields]
        text = msgspec.json.encode(bare).decode()
        return text, schema_id(text)

    def _declare(self, uow: UnitOfWork, dataset: DatasetRow, now: Micros) -> None:
        held = datasets.shown_schema(uow, dataset)
        fresh = self._schema() or held
        if dataset.version_count and fresh[1] == held[1]:
            return
        version_id = ids.derived_id("declared", dataset.id, fresh[1], str(now))
        _, version = datasets.add_version(
            uow, dataset, version_id, Origin.DECLARED, None, fresh, now
        )
        version = self._describe(version)
        uow.versions.put(version.id, version)
        datasets.publish(uow, version, now, now)

    def _write_for_run(
        self, uow: UnitOfWork, dataset: DatasetRow, run: RunRow, now: Micros
    ) -> None:
        written = (DatasetRole.OUTPUT, dataset.id) in uow.io_of(run.id)
        dataset, version = runs.write_dataset(uow, run, dataset, self._schema(), now)
        fields, schema_of_fields = self._schema() or (version.fields, version.schema_id)
        if written and run.ended_at is not None and schema_of_fields != version.schema_id:
            raise Conflict(
                f"run {run.id} is {run.state}: its version V{version.number} of {dataset.name} "
                "can no longer change; state the dataset without runId, or with a new run's"
            )
        version = replace(
            self._describe(version),
            fields=fields,
            schema_id=schema_of_fields,
            type=self.type,
            physical_name=self.physical_name,
            source_name=self.source_name,
        )
        uow.versions.put(version.id, version)
        runs.settle(uow, run, run)

    def _describe(self, version: VersionRow) -> VersionRow:
        """Describe a version; the declared description replaces an inherited one."""
        stated = {"schema": self.fields, "documentation": self.description}
        names = [name for name, value in stated.items() if value is not None]
        stamps = mark_stated(version.stamps, *names) if names else version.stamps
        description = self.description if self.description is not None else version.description
        return replace(version, description=description, stamps=stamps)


class DeleteDataset(Write, frozen=True):
    """Hide a dataset; its versions and lineage stay."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    name: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        dataset = dataset_row(uow, self.namespace, self.name)
        at = datasets.next_change(dataset, now)
        uow.datasets.put(dataset.id, replace(dataset, hidden=1, hidden_at=at, updated_at=at))
        record(uow, now, self.who, "dataset delete", f"dataset:{self.namespace}:{self.name}")


class RestoreDataset(Write, frozen=True):
    """Show a deleted dataset again."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    name: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        dataset = dataset_row(uow, self.namespace, self.name)
        at = datasets.next_change(dataset, now)
        uow.datasets.put(dataset.id, replace(dataset, hidden=0, hidden_at=at, updated_at=at))
        dataset_names.show_namespace(uow, dataset.namespace)
        record(uow, now, self.who, "dataset restore", f"dataset:{self.namespace}:{self.name}")


class TagDataset(Write, frozen=True):
    """Add a tag to a dataset or to one of its fields."""

    namespace: str
    name: str
    tag: str
    field: str | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        dataset = dataset_row(uow, self.namespace, self.name, visible=True)
        if self.field is not None:
            check_field(uow, dataset, self.field)
        tagged = dataset_names.tag_dataset(uow, dataset, [TagMark(self.tag, self.field)])
        uow.datasets.put(dataset.id, replace(tagged, updated_at=max(now, dataset.updated_at)))


class UntagDataset(Write, frozen=True):
    """Remove a tag from a dataset or from one of its fields."""

    namespace: str
    name: str
    tag: str
    field: str | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        dataset = dataset_row(uow, self.namespace, self.name, visible=True)
        untagged = dataset_names.untag_dataset(dataset, TagMark(self.tag, self.field))
        uow.datasets.put(dataset.id, replace(untagged, updated_at=max(now, dataset.updated_at)))

"""The columns of datasets as they are, or were at a time, each looked up once."""

from collections.abc import Collection, Iterable
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from penstock.catalog.column_names import names_told
from penstock.catalog.facets import others_hold
from penstock.catalog.known_facets import COLUMNS
from penstock.catalog.lineage import shown_fields
from penstock.catalog.lineage_edges import NOW, dropped_then
from penstock.catalog.nodes import Named, NamedDataset
from penstock.catalog.schema import load_fields
from penstock.clock import Micros
from penstock.db import Transaction


class Column(NamedTuple):
    """A field of a dataset."""

    dataset_id: str
    field: str


class MadeFrom(NamedTuple):
    """A column from which another is made, and how."""

    column: Column
    description: str | None
    type: str | None


class Shown(Struct, frozen=True):
    """The version of a dataset whose columns count, and the types of its fields."""

    namespace: str
    name: str
    version_id: str | None
    column_set_id: str | None
    types: dict[str, str | None]


class Columns:
    """Which columns there are and what they are made from, with deleted datasets left out."""

    def __init__(self, tx: Transaction, root: Named, as_of: Micros | None) -> None:
        self._tx = tx
        self._root = root
        self._as_of = as_of
        self._shown: dict[str, Shown | None] = {}  # None: deleted, or never there
        self._inputs: dict[Column, list[MadeFrom]] = {}

    def shown(self, dataset: str) -> Shown:
        """The version that counts of a dataset of which a column was given out, or of the root."""
        self._show([dataset])
        shown = self._shown[dataset]
        assert shown is not None, "columns of what is not shown are not given out"
        return shown

    def all_of(self, datasets: Collection[str]) -> set[Column]:
        """Every field of these datasets, by their schema or by their lineage."""
        self._show(datasets)
        shown = {d: version for d in datasets if (version := self._shown[d]) is not None}
        rows = self._tx.fetch("column_fields", sets=_sets(shown.values()))
        stated = {Column(d, field) for d, version in shown.items() for field in version.types}
        return stated | {Column(dataset, field) for dataset, field in rows}

    def sources(self, columns: Collection[Column]) -> set[Column]:
        """The columns that these are made from."""
        inputs = self.inputs_of(columns)
        return {source.column for column in columns for source in inputs[column]}

    def products(self, columns: Collection[Column]) -> set[Column]:
        """The columns that are made from these."""
        rows = self._tx.fetch(
            "column_outputs",
            ids=list({column.dataset_id for column in columns}),
            fields=list({column.field for column in columns}),
        )
        # Ids and fields are matched apart from each other, and old sets are still there.
        wanted = set(columns)
        rows = [row for row in rows if (row[0], row[1]) in wanted]
        self._show({row[2] for row in rows})
        return {
            Column(dataset, field)
            for _, _, dataset, field, set_id in rows
            if (version := self._shown[dataset]) is not None and version.column_set_id == set_id
        }

    def inputs_of(self, columns: Collection[Column]) -> dict[Column, list[MadeFrom]]:
        """What these columns, and maybe others, are made from."""
        fresh = [column for column in columns if column not in self._inputs]
        if fresh:
            self._load_inputs(fresh)
        return self._inputs

    def _load_inputs(self, columns: list[Column]) -> None:
        datasets = {column.dataset_id for column in columns}
        self._show(datasets)
        rows = self._tx.fetch(
            "column_inputs",
            sets=_sets(self._shown[dataset] for dataset in datasets),
            fields=list({column.field for column in columns}),
        )
        self._show({row[2] for row in rows})
        self._show_unnamed({row[2] for row in rows}, datasets)
        self._inputs.update((column, []) for column in columns)
        wanted = set(columns)
        for dataset, field, source, source_field, description, kind in rows:
            column = Column(dataset, field)
            if column in wanted and self._shown[source] is not None:
                made_from = MadeFrom(Column(source, source_field), description, kind)
                self._inputs[column].append(made_from)

    def _show(self, datasets: Iterable[str]) -> None:
        """Look up the versions that count, where that was not done before."""
        fresh = [dataset for dataset in datasets if dataset not in self._shown]
        if not fresh:
            return
        self._shown.update(dict.fromkeys(fresh))
        statement = "column_versions" if self._as_of is None else "column_versions_as_of"
        at = NOW if self._as_of is None else self._as_of
        dropped = dropped_then(self._tx, set(fresh) - {self._root.id}, self._as_of)
        for row in self._tx.fetch(statement, ids=fresh, at=at, root=self._root.id):
            dataset, namespace, name, observed, declared, said, said_by_version, *stored = row
            if dataset in dropped:
                continue
            pinned = self._pinned(dataset)
            version, origin, fields, set_id = pinned or stored
            if pinned is None and declared is not None:
                held = others_hold(COLUMNS, said_by_version or "{}", said, at)
                set_id = declared if held else set_id
            stated = load_fields(shown_fields(origin, fields, observed))
            types = {field.name: field.type for field in stated}
            self._shown[dataset] = Shown(namespace, name, version, set_id, types)

    def _show_unnamed(self, sources: set[str], made_of_them: Iterable[str]) -> None:
        """Show datasets of which only the column lineage of others tells: they have no version."""
        unseen = [source for source in sources if self._shown[source] is None]
        if not unseen:
            return
        known = {found for (found,) in self._tx.fetch("column_datasets_known", ids=unseen)}
        unnamed = {source for source in unseen if source not in known}
        if not unnamed:
            return
        shown = [version for d in made_of_them if (version := self._shown[d]) is not None]
        versions = [version.version_id for version in shown if version.version_id is not None]
        names = names_told(chain(*self._tx.fetch("column_facets", ids=versions)))
        for source in unnamed & names.keys():
            name = names[source]
            self._shown[source] = Shown(name.namespace, name.name, None, None, {})

    def _pinned(self, dataset: str) -> tuple[str, str, str, str | None] | None:
        """The version that was asked for by name, if it is of this dataset."""
        if dataset != self._root.id or not isinstance(self._root, NamedDataset):
            return None
        version = self._root.version
        if version is None:
            return None
        return version.id, version.origin, version.fields, version.column_set_id


def _sets(versions: Iterable[Shown | None]) -> list[str]:
    return [v.column_set_id for v in versions if v is not None and v.column_set_id is not None]

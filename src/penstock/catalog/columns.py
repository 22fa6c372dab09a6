"""The columns of datasets as they are, or were at a time, each looked up once."""

from collections.abc import Collection, Iterable
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from penstock.catalog.column_names import names_told
from penstock.catalog.facets import NONE, laid_over, others_hold
from penstock.catalog.known_facets import ALL_FIELDS, COLUMNS
from penstock.catalog.lineage_edges import NOW, dropped_then
from penstock.catalog.nodes import Named, NamedDataset
from penstock.catalog.schema import load_fields, shown_fields
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
    indirect: bool


class Shown(Struct, frozen=True):
    """The version of a dataset whose columns count, and the types of its fields."""

    namespace: str
    name: str
    version_id: str | None
    column_set_id: str | None
    types: dict[str, str | None]


class Columns:
    """Which columns there are and what they are made from, with deleted datasets left out."""

    def __init__(
        self, tx: Transaction, root: Named, as_of: Micros | None, *, with_indirect: bool = False
    ) -> None:
        self._tx = tx
        self._root = root
        self._as_of = as_of
        self._with_indirect = with_indirect
        self._of_all_fields: dict[str, list[MadeFrom]] = {}  # by dataset
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
        """The columns that these are made from, or depend on with all of their dataset."""
        inputs = self.inputs_of(columns)
        found = {source.column for column in columns for source in inputs[column]}
        for dataset in {column.dataset_id for column in columns}:
            found |= {source.column for source in self.inputs_of_all_fields(dataset)}
        return found

    def products(self, columns: Collection[Column]) -> set[Column]:
        """The columns that are made from these, and whole datasets that depend on them."""
        rows = self._tx.fetch(
            "column_outputs",
            ids=list({column.dataset_id for column in columns}),
            fields=list({column.field for column in columns}),
        )
        # Ids and fields are matched apart from each other, and old sets are still there.
        wanted = set(columns)
        rows = [row for row in rows if (row[0], row[1]) in wanted]
        self._show({row[2] for row in rows})
        found = {
            Column(dataset, field)
            for _, _, dataset, field, set_id in rows
            if (version := self._shown[dataset]) is not None and version.column_set_id == set_id
        }
        dependent = {column.dataset_id for column in found if column.field == ALL_FIELDS}
        found -= {Column(dataset, ALL_FIELDS) for dataset in dependent}
        return found | self.all_of(dependent) if self._with_indirect else found

    def inputs_of(self, columns: Collection[Column]) -> dict[Column, list[MadeFrom]]:
        """What these columns, and maybe others, are made from."""
        fresh = [column for column in columns if column not in self._inputs]
        if fresh:
            self._load_inputs(fresh)
        return self._inputs

    def inputs_of_all_fields(self, dataset: str) -> list[MadeFrom]:
        """The columns that every field of a dataset depends on; none where nobody asked for them.

        They are known once the inputs of a column of the dataset are.
        """
        return self._of_all_fields.get(dataset, [])

    def _load_inputs(self, columns: list[Column]) -> None:
        datasets = {column.dataset_id for column in columns}
        self._show(datasets)
        fresh = datasets - self._of_all_fields.keys()
        also = [ALL_FIELDS] if self._with_indirect and fresh else []
        rows = self._tx.fetch(
            "column_inputs",
            sets=_sets(self._shown[dataset] for dataset in datasets),
            fields=list({*(column.field for column in columns), *also}),
        )
        self._show({row[2] for row in rows})
        self._show_unnamed({row[2] for row in rows}, datasets)
        self._inputs.update((column, []) for column in columns)
        wanted = set(columns)
        self._of_all_fields.update((dataset, []) for dataset in fresh)
        for dataset, field, source, source_field, description, kind, indirect in rows:
            if self._shown[source] is None:
                continue
            made_from = MadeFrom(Column(source, source_field), description, kind, bool(indirect))
            if field == ALL_FIELDS:
                if also and dataset in fresh:
                    self._of_all_fields[dataset].append(made_from)
            elif (column := Column(dataset, field)) in wanted:
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
            dataset, namespace, name, observed, declared, said, own, inherited, *stored = row
            if dataset in dropped:
                continue
            pinned = self._pinned(dataset)
            version, fields, set_id = pinned or stored
            if pinned is None and declared is not None:
                held = others_hold(COLUMNS, laid_over(inherited, own or NONE), said, at)
                set_id = declared if held else set_id
            stated = load_fields(shown_fields(fields, observed))
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

    def _pinned(self, dataset: str) -> tuple[str, str, str | None] | None:
        """The version that was asked for by name, if it is of this dataset."""
        if dataset != self._root.id or not isinstance(self._root, NamedDataset):
            return None
        version = self._root.version
        if version is None:
            return None
        return version.id, version.fields, version.column_set_id


def _sets(versions: Iterable[Shown | None]) -> list[str]:
    return [v.column_set_id for v in versions if v is not None and v.column_set_id is not None]

"""The rows of arcs, and their tables in a unit of work."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from penstock.arcs.spec import Arc, from_text
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.lots.manifests import ManifestNote, QualityCheck
from penstock.schema.arcs import PartState
from penstock.states import ManifestState
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes

LotKey = tuple[str, str]  # job id, lot
PartRows = Mapping[str, "PartRow"]  # by part

NamedNotes = tuple[tuple[DatasetName, ManifestNote], ...]
NamedChecks = tuple[tuple[DatasetName, tuple[QualityCheck, ...]], ...]

_decode_notes = msgspec.json.Decoder(NamedNotes).decode


class ArcRow(Row, frozen=True):
    """An arc as it was declared."""

    job_id: str
    namespace: str
    name: str
    project: str
    declaration: str
    created_at: Micros
    updated_at: Micros

    @property
    def arc(self) -> Arc:
        """The declaration."""
        return from_text(self.declaration)


class PartRow(Row, frozen=True):
    """A part of a lot: the attempt that ran it last, and the manifests of that (`outputs`, JSON).

    `inputs` is the digest of its inputs and outputs. With another digest it cannot be reused.
    """

    job_id: str
    lot: str
    part: str
    state: PartState
    inputs: str
    attempt: str
    run_id: str
    outputs: str
    error: str
    at: Micros

    @property
    def named_notes(self) -> NamedNotes:
        """The manifests of its outputs, with their datasets."""
        return _decode_notes(self.outputs)

    def is_good_for(self, inputs: str) -> bool:
        """Whether its result can be reused for these inputs and outputs."""
        return self.state in (PartState.COMPLETE, PartState.EMPTY) and self.inputs == inputs


class AttemptRow(Row, frozen=True):
    """A failed attempt: the keys of the manifests of the data that it left, as JSON."""

    run_id: str
    job_id: str
    lot: str
    state: ManifestState
    keys: str
    at: Micros


class UnsettledRow(Row, frozen=True):
    """A lot whose state keys may not follow the database yet.

    The owner is the job of an arc, or a dataset whose objects arrive.
    """

    owner_id: str
    lot: str
    attempt: str


class _GoneArc(Struct, frozen=True):
    job_id: str


class _GoneLot(Struct, frozen=True):
    job_id: str
    lot: str


class ArcTables:
    """Arcs by job, and the parts of each lot together."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        undo = uow.undo
        self.arcs: TableCache[ArcRow] = TableCache(self._fetch_arcs, undo)
        self.parts: TableCache[PartRows] = TableCache(self._fetch_parts, undo)
        self.attempts: TableCache[AttemptRow] = TableCache(self._fetch_attempts, undo)
        self.cached: tuple[TableCache[Any], ...] = (self.arcs, self.parts, self.attempts)
        self.unsettled: TableCache[UnsettledRow] = TableCache(write_only, undo)
        self.settled: TableCache[UnsettledRow] = TableCache(write_only, undo)
        self.append_only: tuple[TableCache[Any], ...] = (self.unsettled, self.settled)

    def changes(self) -> Changes:
        """Return the rows to write, by statement."""
        parts = [
            row
            for key, before in self.parts.before.items()
            for part, row in (self.parts.get(key) or {}).items()
            if row != (before or {}).get(part)
        ]
        return [
            ("forget_arcs", [_GoneArc(key) for key in self.arcs.gone()]),
            ("put_arcs", self.arcs.changed()),
            ("forget_arc_parts", [_GoneLot(*key) for key in self.parts.gone()]),
            ("put_arc_parts", parts),
            ("put_arc_attempts", self.attempts.changed()),
            ("forget_unsettled_keys", self.settled.changed()),
            ("put_unsettled_keys", self.unsettled.changed()),
        ]

    def put_unsettled(self, owner_id: str, lot: str, attempt: str) -> None:
        """Mark a lot whose state keys are to be written."""
        self.unsettled.put((owner_id, lot), UnsettledRow(owner_id, lot, attempt))

    def parts_of(self, job_id: str, lot: str) -> PartRows:
        """Return the parts of a lot that were ever run."""
        return self.parts.get((job_id, lot)) or {}

    def put_part(self, row: PartRow) -> None:
        """Write one part."""
        key = (row.job_id, row.lot)
        self.parts.put(key, {**self.parts_of(*key), row.part: row})

    def _fetch_arcs(self, ids: list[str]) -> dict[str, ArcRow]:
        return {row.job_id: row for row in self._uow.tx.rows(ArcRow, "arcs_by_ids", ids=ids)}

    def _fetch_attempts(self, ids: list[str]) -> dict[str, AttemptRow]:
        rows = self._uow.tx.rows(AttemptRow, "arc_attempts_by_ids", ids=ids)
        return {row.run_id: row for row in rows}

    def _fetch_parts(self, keys: list[LotKey]) -> dict[LotKey, PartRows]:
        parts_by_lot: dict[LotKey, dict[str, PartRow]] = {}
        for job_id, pairs in groupby(sorted(keys), key=lambda key: key[0]):
            lots = [lot for _, lot in pairs]
            rows = self._uow.tx.rows(PartRow, "arc_parts_of_lots", job_id=job_id, lots=lots)
            for row in rows:
                parts_by_lot.setdefault((row.job_id, row.lot), {})[row.part] = row
        return dict(parts_by_lot)

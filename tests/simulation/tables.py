"""The contents of the catalog's tables, as values that tests compare."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from penstock.catalog import rows
from penstock.db import Transaction

# Capability folder for `open_database(…, extra=[STATEMENTS])`.
STATEMENTS = Path(__file__).parent


class EventCount(msgspec.Struct, frozen=True):
    """How many events of a type there were in an hour."""

    hour: int
    event_type: str
    total: int


class Tally(msgspec.Struct, frozen=True):
    """How many visible datasets or jobs a namespace has."""

    kind: str
    namespace: str
    state: str
    total: int


SHAPES: Mapping[str, type[msgspec.Struct]] = {
    "namespace": rows.NamespaceRow,
    "source": rows.SourceRow,
    "tag": rows.TagRow,
    "dataset": rows.DatasetRow,
    "alias": rows.AliasRow,
    "version": rows.VersionRow,
    "facet_set": rows.FacetSetRow,
    "job": rows.JobRow,
    "job_version": rows.JobVersionRow,
    "edge": rows.EdgeRow,
    "run": rows.RunRow,
    "run_dataset": rows.RunDatasetRow,
    "quality_report": rows.QualityReportRow,
    "column_edge": rows.ColumnEdgeRow,
    "search_doc": rows.SearchRow,
    "tally": Tally,
}
# Objects whose keys have no fixed order. Facets are kept word for word.
_FACETS = frozenset({"facets", "job_facets", "observed", "declared"})
_STAMPS = frozenset({"stamps", "declared_stamps"})
_decode_facets = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

Seen = dict[str, list[dict[str, Any]]]


def visible(tx: Transaction) -> Seen:
    """Return all rows that doors can show, sorted, without the log of events."""
    return {
        table: sorted((_plain(row) for row in tx.rows(shape, f"every_{table}")), key=repr)
        for table, shape in SHAPES.items()
    }


def differences(one: Seen, other: Seen) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that only one of the two has, for the message of a failed test."""
    rows = {}
    for table in SHAPES:
        lost = [{"only": "first"} | row for row in one[table] if row not in other[table]]
        gained = [{"only": "second"} | row for row in other[table] if row not in one[table]]
        if lost or gained:
            rows[table] = lost + gained
    return rows


def _plain(row: msgspec.Struct) -> dict[str, Any]:
    values = {name: _value(name, value) for name, value in msgspec.structs.asdict(row).items()}
    if values.get("hidden") == 0:
        values.pop("hidden_at", None)  # only relevant while the thing is hidden
    return values


def _value(name: str, value: Any) -> Any:
    if name in _FACETS:
        return {facet: bytes(raw).decode() for facet, raw in sorted(_decode_facets(value).items())}
    return msgspec.json.decode(value) if name in _STAMPS else value

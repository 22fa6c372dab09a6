"""Checks of the data: a lot that fails is held until a person accepts it or it is made again."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec import Struct

from penstock.catalog.events.facets import Facets
from penstock.catalog.events.known_facets import ASSERTIONS
from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks.hold_reasons import QUALITY, add_reason
from penstock.locks.rows import CheckRow, LogRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.lots.manifests import QualityCheck
from penstock.schema.lots import Status

WHO = "quality checks"  # the holder of a lot whose checks failed
_NAME_CHARS_MAX = 200
_DETAIL_CHARS_MAX = 2000
_SHOWN_MAX = 3
_WARNINGS = ("warn", "warning", "info")


Checks = Mapping[str, Sequence[QualityCheck]]  # by dataset id
NO_CHECKS: Checks = MappingProxyType({})


class _Assertion(Struct):
    assertion: str
    success: bool
    column: str | None = None
    severity: str | None = None


class _Facet(Struct):
    assertions: list[msgspec.Raw]


_decode = msgspec.json.Decoder(_Facet).decode
_decode_assertion = msgspec.json.Decoder(_Assertion).decode


def read_checks(facets: Facets) -> list[QualityCheck]:
    """Read check results from the facets of a dataset; skip those that are malformed."""
    raw = facets.get(ASSERTIONS)
    if raw is None:
        return []
    try:
        assertions = _decode(raw).assertions
    except msgspec.MsgspecError:
        return []
    return [check for each in assertions if (check := _check(each)) is not None]


def _check(raw: msgspec.Raw) -> QualityCheck | None:
    try:
        result = _decode_assertion(raw)
    except msgspec.MsgspecError:
        return None
    if not result.success and result.severity in _WARNINGS:
        return None
    return QualityCheck(result.assertion, result.success, result.column or "")


def apply_checks(
    tables: LockTables,
    row: StatusRow,
    version_id: str,
    checks: Sequence[QualityCheck],
    run_id: str | None,
    now: Micros,
) -> str:
    """Record check results; hold the lot if a check of its current version failed.

    Return the reason of the hold, or an empty text.
    """
    _record(tables, row, version_id, checks, run_id, now)
    why = describe_failures(checks)
    is_published = Status.READY in (row.status, row.held_from) and row.status != Status.RUNNING
    if not why or not is_published or row.version_id != version_id:
        return ""
    add_reason(tables, row.dataset_id, row.lot, QUALITY)
    if row.status == Status.READY:
        tables.put_status(replace(row, status=Status.HOLD, held_from=Status.READY, since=now))
    entry = (now, "hold", row.lot, None, row.dataset_id, run_id, row.status, Status.HOLD)
    tables.append(LogRow(*entry, WHO, why))
    return why


def _record(
    tables: LockTables,
    row: StatusRow,
    version_id: str,
    checks: Sequence[QualityCheck],
    run_id: str | None,
    now: Micros,
) -> None:
    # Of two results with one name, the last is kept: failures come last.
    for check in sorted(checks, key=lambda check: not check.success):
        name, field = _text(check.name, _NAME_CHARS_MAX), _text(check.field, _NAME_CHARS_MAX)
        tables.checks.put(
            (version_id, name, field),
            CheckRow(
                version_id=version_id,
                name=name,
                field=field,
                dataset_id=row.dataset_id,
                lot=row.lot,
                success=int(check.success),
                detail=_text(check.detail, _DETAIL_CHARS_MAX),
                run_id=run_id,
                at=now,
            ),
        )


def describe_failures(checks: Sequence[QualityCheck]) -> str:
    """Describe the checks that failed; return an empty text if none did."""
    bad = [check.words for check in checks if not check.success]
    if not bad:
        return ""
    more = f" and {len(bad) - _SHOWN_MAX} more" if len(bad) > _SHOWN_MAX else ""
    return _text(f"failed: {'; '.join(bad[:_SHOWN_MAX])}{more}", _DETAIL_CHARS_MAX)


def _text(text: str, chars_max: int) -> str:
    return text[:chars_max].replace("\x00", "")

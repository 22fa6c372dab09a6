"""Checks of the data: a lot that fails them is held until a person accepts it, or it is remade."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec import Struct

from penstock.catalog.openlineage import Mention
from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks.held import QUALITY, add_reason
from penstock.locks.room import LockRoom
from penstock.locks.rows import CheckRow, LogRow, StatusRow
from penstock.locks.table import Status
from penstock.lots.manifests import Check

FACET = "dataQualityAssertions"
WHO = "quality checks"  # who holds a lot whose checks fail
_NAME_CHARS_MAX = 200
_DETAIL_CHARS_MAX = 2000
_SHOWN_MAX = 3


Checks = Mapping[str, Sequence[Check]]  # by dataset id
NO_CHECKS: Checks = MappingProxyType({})


class _Assertion(Struct):
    assertion: str
    success: bool
    column: str | None = None


class _Facet(Struct):
    assertions: list[_Assertion]


_decode = msgspec.json.Decoder(_Facet).decode


def told_of(mention: Mention) -> list[Check]:
    """What an event says that checks of a dataset said."""
    raw = mention.io_facets.get(FACET) or mention.facets.get(FACET)
    if raw is None:
        return []
    try:
        told = _decode(raw)
    except msgspec.MsgspecError:
        return []
    return [
        Check(each.assertion[:_NAME_CHARS_MAX], each.success, (each.column or "")[:_NAME_CHARS_MAX])
        for each in told.assertions
    ]


def note(
    room: LockRoom,
    row: StatusRow,
    version_id: str,
    checks: Sequence[Check],
    run_id: str | None,
    now: Micros,
) -> None:
    """Keep what checks said about a version of a lot."""
    for check in checks:
        room.checks.put(
            (version_id, check.name, check.field),
            CheckRow(
                version_id=version_id,
                name=check.name[:_NAME_CHARS_MAX],
                field=check.field[:_NAME_CHARS_MAX],
                dataset_id=row.dataset_id,
                lot=row.lot,
                success=int(check.success),
                detail=check.detail[:_DETAIL_CHARS_MAX],
                run_id=run_id,
                at=now,
            ),
        )


def failed(checks: Sequence[Check]) -> str:
    """Which checks failed, in words; empty if none did."""
    bad = [check.words for check in checks if not check.success]
    if not bad:
        return ""
    more = f" and {len(bad) - _SHOWN_MAX} more" if len(bad) > _SHOWN_MAX else ""
    return f"failed: {'; '.join(bad[:_SHOWN_MAX])}{more}"


def hold(room: LockRoom, row: StatusRow, why: str, run_id: str | None, now: Micros) -> None:
    """Hold a lot that is READY because checks of it failed."""
    room.put_status(replace(row, status=Status.HOLD, held_from=Status.READY, since=now))
    add_reason(room, row.dataset_id, row.lot, QUALITY)
    room.append(
        LogRow(
            now, "hold", row.lot, None, row.dataset_id, run_id, row.status, Status.HOLD, WHO, why
        )
    )

"""Invariants of manifests, of their objects, and of the outbox."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Final

from penstock import ids
from penstock.catalog.rows import Row
from penstock.errors import Invalid, NotFound, PenstockError
from penstock.lots.manifests import Manifest, lot_data_folder
from penstock.objects import Objects
from penstock.provenance.checks.invariant import NO_ID, PAGE, Grounds, Invariant, by_statement
from penstock.provenance.verify import (
    Checked,
    Listed,
    check_item,
    list_items,
    map_in_order,
    read_manifest,
)
from penstock.states import RunState

_ATTEMPT: Final = re.compile(r"/attempt=([^/]*)/")


class _Noted(Row, frozen=True):
    dataset_id: str
    lot: str
    version_id: str
    state: str
    key: str
    digest: str
    attempt: str
    uris: int
    bytes: int


def manifest_files(grounds: Grounds) -> Iterator[str]:
    """Yield manifests of READY lots that are not in the store or, in a deep check, have changed."""
    objects = grounds.objects()
    with ThreadPoolExecutor(grounds.readers, thread_name_prefix="check") as pool:
        for page in _pages(grounds):
            work = map_in_order(pool, lambda row: _fault(grounds, objects, row), page, PAGE)
            missed = [(row, fault) for row, fault in zip(page, work, strict=True) if fault]
            for row, fault in _confirmed(grounds, missed):
                yield f"lot {row.lot}, version {row.version_id}: {fault}"


def _fault(grounds: Grounds, objects: Objects, row: _Noted) -> str | None:
    try:
        if grounds.deep:
            _check_note(row, read_manifest(objects, row.key, row.digest))
        elif not objects.exists(row.key):
            return f"its manifest {row.key} is not in the store"
    except NotFound:
        return f"its manifest {row.key} is not in the store"
    except PenstockError as error:
        return str(error)
    return None


def _check_note(row: _Noted, manifest: Manifest) -> None:
    recorded = (row.lot, row.state, row.attempt, row.uris, row.bytes)
    lot, state, attempt = manifest.lot, manifest.state, manifest.attempt
    if recorded != (lot, state, attempt, manifest.count, manifest.bytes):
        raise Invalid(f"{row.key} is not the recorded manifest")


def _pages(grounds: Grounds) -> Iterator[list[_Noted]]:
    """Yield the manifests of current versions by pages, each page in its own snapshot."""
    dataset_id, lot = NO_ID, ""
    while not grounds.stop.is_set():
        with grounds.database.read() as tx:
            page = tx.rows(
                _Noted, "ready_manifests_from", dataset_id=dataset_id, lot=lot, most=PAGE
            )
        if not page:
            return
        yield page
        dataset_id, lot = page[-1].dataset_id, page[-1].lot


def _confirmed(grounds: Grounds, missed: list[tuple[_Noted, str]]) -> Iterator[tuple[_Noted, str]]:
    """Return those that are still current: a lot may have changed since the lookup."""
    if not missed:
        return
    keys = [f"{row.dataset_id}{row.version_id}{row.lot}" for row, _ in missed]
    with grounds.database.read() as tx:
        still = {version for (version,) in tx.fetch("lots_still_in_versions", keys=keys)}
    yield from ((row, fault) for row, fault in missed if row.version_id in still)


def manifest_items(grounds: Grounds) -> Iterator[str]:
    """Yield items of READY lots that lack their size and digest; every byte is read."""
    if not grounds.deep:
        return
    objects = grounds.objects()
    with ThreadPoolExecutor(grounds.readers, thread_name_prefix="check") as pool:
        for page in _pages(grounds):
            for row in page:
                faults = _item_faults(grounds, objects, pool, row)
                found = [(row, fault) for fault in faults]
                for _, fault in _confirmed(grounds, found):
                    yield f"lot {row.lot}, version {row.version_id}: {fault}"


def _item_faults(
    grounds: Grounds, objects: Objects, pool: ThreadPoolExecutor, row: _Noted
) -> Iterator[str]:
    try:
        items = list_items(objects, read_manifest(objects, row.key, None))
        entries = takewhile(lambda _: not grounds.stop.is_set(), items)

        def check(entry: Listed) -> Checked:
            return check_item(objects, entry)

        for checked in map_in_order(pool, check, entries, 2 * grounds.readers):
            if checked.fault:
                yield f"{checked.where}: {checked.fault}"
    except PenstockError as error:
        yield str(error)


def failed_attempts(grounds: Grounds) -> Iterator[str]:
    """Yield manifest items that another attempt wrote, or one that failed."""
    if not grounds.deep:
        return
    objects = grounds.objects()
    for page in _pages(grounds):
        for row in page:
            try:
                entries = list(list_items(objects, read_manifest(objects, row.key, None)))
            except PenstockError:
                continue  # reported by `manifest-files`
            strange = [fault for entry in entries if (fault := _stranger(objects, entry))]
            bad = _failed_parts(grounds, {entry.manifest for entry in entries if entry.part})
            yield from (f"lot {row.lot}, version {row.version_id}: {f}" for f in [*strange, *bad])


def _stranger(objects: Objects, entry: Listed) -> str | None:
    manifest = entry.manifest
    folder = f"{objects.url}/{lot_data_folder(manifest.dataset, manifest.lot)}/"
    wrote = _ATTEMPT.search(entry.item.uri) if entry.item.uri.startswith(folder) else None
    if wrote is None or wrote[1] == manifest.attempt:
        return None
    return f"{entry.item.uri} is of attempt {wrote[1]}, its manifest of {manifest.attempt}"


def _failed_parts(grounds: Grounds, manifests: set[Manifest]) -> Iterator[str]:
    """Return failed parts. A finished part is kept although the attempt on the lot failed."""
    runs = {
        ids.derived_id("part", manifest.attempt[:36], manifest.part): manifest
        for manifest in manifests
    }
    if not runs:
        return
    with grounds.database.read() as tx:
        states: dict[str, str] = dict(tx.fetch("run_states", ids=sorted(runs)))
    for run_id, state in states.items():
        if state != RunState.COMPLETED:
            yield f"part {runs[run_id].part} is published, but its run {run_id} is {state}"


INVARIANTS: Final[tuple[Invariant, ...]] = (
    by_statement(
        "manifests",
        "a lot that is READY has a manifest that is complete or empty",
        "broken_manifests",
        "lot {2} of {0}/{1} is READY with {3}",
    ),
    Invariant(
        "manifest-files",
        "the manifests of READY lots are in the store (--deep: with their recorded digests)",
        manifest_files,
    ),
    Invariant(
        "manifest-items",
        "all objects that they list exist, with size and digest (--deep)",
        manifest_items,
    ),
    by_statement(
        "attempts",
        "a manifest is of the completed attempt that published it",
        "broken_attempts",
        "lot {2} of {0}/{1} has a manifest of attempt {3}, but its run is {4}",
    ),
    Invariant(
        "failed-attempts",
        "no published manifest lists data of a failed attempt (--deep)",
        failed_attempts,
    ),
    by_statement(
        "outbox",
        "no subscriber is ahead of the newest event",
        "broken_cursors",
        "subscriber {} is at event {}, but the newest is {}",
    ),
)

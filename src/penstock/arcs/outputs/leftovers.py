"""The data that failed attempts left: listing it, and removing it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from penstock.arcs.commands import RecordAttempts
from penstock.arcs.queries import attempts_of, parts_of, read_manifest
from penstock.clock import format_time, system_clock
from penstock.db import Transaction
from penstock.locks.queries.claims import find_dataset
from penstock.lots.manifests import (
    RETRY_MARK,
    DatasetRef,
    Item,
    Manifest,
    encode,
    lot_data_folder,
    lot_folder,
    manifest_key,
)
from penstock.objects import Objects, StoredEntry
from penstock.states import RUN, ManifestState, RunState
from penstock.store.write_queue import WriteQueue

_ATTEMPT = "attempt="


def write_partial(
    objects: Objects, refs: Sequence[DatasetRef], lot: str, attempt: str, comment: str
) -> tuple[str, ...]:
    """Write manifests of the data that an attempt left, one for each output; return their keys."""
    return tuple(
        key
        for ref in refs
        if (key := _list_leftovers(objects, ref, lot, attempt, ManifestState.PARTIAL, comment))
    )


def failed_attempts(
    catalog: WriteQueue, objects: Objects, refs: Sequence[DatasetRef], lot: str
) -> list[str]:
    """Return the attempts that left data, have failed, and were never listed."""
    seen = _attempts_seen(objects, refs, lot)
    if not seen:
        return []
    with catalog.read() as tx:
        states: dict[str, str] = dict(tx.fetch("run_states", ids=sorted(seen)))
        listed = {run_id for (run_id,) in tx.fetch("listed_attempts", ids=sorted(seen))}
    bad = (RunState.FAILED, RunState.ABORTED)
    return [run for run in sorted(seen - listed) if states.get(run, "") in bad]


def list_dead_attempts(
    catalog: WriteQueue, objects: Objects, refs: Sequence[DatasetRef], job_id: str, lot: str
) -> None:
    """List the data of attempts whose engine died before it could."""
    attempts = failed_attempts(catalog, objects, refs, lot)
    rows = tuple(
        (run_id, write_partial(objects, refs, lot, run_id, "it died")) for run_id in attempts
    )
    if rows:
        catalog.submit(RecordAttempts(job_id, lot, rows)).result()


def tidy(
    catalog: WriteQueue, objects: Objects, refs: Sequence[DatasetRef], job_id: str, lot: str
) -> int:
    """Remove the data of all attempts that have ended.

    A worker that was taken for dead may write after its attempt was cleaned. Objects are deleted
    before any is written, because the store may be full.
    """
    dead = failed_attempts(catalog, objects, refs, lot)
    if dead:
        rows = tuple((run_id, ()) for run_id in dead)
        catalog.submit(RecordAttempts(job_id, lot, rows)).result()
    seen = sorted(_attempts_seen(objects, refs, lot))
    with catalog.read() as tx:
        states = tx.fetch("run_states", ids=seen) if seen else []
    ended = [run_id for run_id, state in states if RunState(state) in RUN.terminal]
    return clean(catalog, objects, refs, job_id, lot, ended)


def clean(
    catalog: WriteQueue,
    objects: Objects,
    refs: Sequence[DatasetRef],
    job_id: str,
    lot: str,
    ended: Collection[str] = (),
) -> int:
    """Remove the data of failed attempts on a lot, except parts that can be reused.

    Unlisted data of attempts in `ended` is removed too: a lost worker may have written it.
    """
    with catalog.read() as tx:
        attempts = [a for a in attempts_of(tx, job_id, lot) if a.state == ManifestState.PARTIAL]
        needed = _needed(tx, refs, job_id, lot)
    kept = keys_in_use(objects, refs, lot, needed)
    over = {*ended, *(attempt.run_id for attempt in attempts)}
    keys: dict[str, list[str]] = {attempt.run_id: [] for attempt in attempts}
    gone = {ref: _remove(objects, ref, lot, over, kept) for ref in (refs if over else ())}
    for ref, went in gone.items():
        for attempt, listed in keys.items():
            items = [_item(objects, entry) for entry in went.get(attempt, ())]
            listed.append(_write(objects, ref, lot, attempt, ManifestState.REMOVED, items, ""))
            objects.delete(manifest_key(ref, lot, ManifestState.PARTIAL, attempt))
    if keys:
        removed = tuple((attempt, tuple(listed)) for attempt, listed in keys.items())
        catalog.submit(RecordAttempts(job_id, lot, removed, ManifestState.REMOVED)).result()
    return len(keys)


def _needed(tx: Transaction, refs: Sequence[DatasetRef], job_id: str, lot: str) -> list[str]:
    """Return the manifests of published versions and of finished parts.

    The publisher does not matter: the wiring may have changed, or other jobs write there.
    """
    datasets = sorted({find_dataset(tx, ref.namespace, ref.name) for ref in refs})
    keys = [key for (key,) in tx.fetch("published_manifests", ids=datasets, lot=lot)]
    parts = parts_of(tx, job_id, lot).values()
    return keys + [noted.key for row in parts for _, noted in row.named_notes]


def keys_in_use(
    objects: Objects, refs: Sequence[DatasetRef], lot: str, manifests: Sequence[str]
) -> set[str]:
    """Return the keys of manifests, of their parts, and of the lot's data that they list."""
    folders = [lot_data_folder(ref, lot) for ref in refs]
    keys, listed = [*manifests], set[str]()
    while keys:
        key = keys.pop()
        if key in listed:
            continue
        # A lost manifest stops the cleaning: its list of data is unknown.
        manifest = read_manifest(objects, key)
        keys += [line.key for line in manifest.parts]
        listed |= {key, *(found for item in manifest.uris for found in _keys_in(folders, item.uri))}
    return listed


def _keys_in(folders: Iterable[str], uri: str) -> Iterator[str]:
    """Return the key that a URI has in one of the folders.

    The start of a URI does not count: the store may have moved to another URL since.
    """
    for folder in folders:
        _, keys, rest = uri.partition(f"/{folder}/")
        if keys:
            yield f"{folder}/{rest}"


def _list_leftovers(
    objects: Objects,
    ref: DatasetRef,
    lot: str,
    attempt: str,
    state: ManifestState,
    comment: str,
) -> str:
    entries = sorted(
        (entry for name, entry in _data(objects, ref, lot) if name == attempt),
        key=lambda entry: entry.key,
    )
    items = [_item(objects, entry) for entry in entries]
    return _write(objects, ref, lot, attempt, state, items, comment)


def _item(objects: Objects, entry: StoredEntry) -> Item:
    return Item(f"{objects.url}/{entry.key}", entry.size)


def _write(
    objects: Objects,
    ref: DatasetRef,
    lot: str,
    attempt: str,
    state: ManifestState,
    items: Iterable[Item],
    comment: str,
) -> str:
    key = manifest_key(ref, lot, state, attempt)
    manifest = Manifest(
        state=state,
        lot=lot,
        dataset=ref,
        uris=tuple(items),
        attempt=attempt,
        created=format_time(system_clock()),
        comment=comment,
    )
    objects.put(key, encode(manifest))
    return key


def _data(objects: Objects, ref: DatasetRef, lot: str) -> Iterator[tuple[str, StoredEntry]]:
    folder = lot_data_folder(ref, lot)
    for entry in objects.list(folder):
        yield attempt_of(entry.key.removeprefix(f"{folder}/").partition("/")[0]), entry


def _nameless(objects: Objects, ref: DatasetRef, lot: str) -> Iterator[tuple[str, Path]]:
    """Yield files that workloads left under names that listings omit, with their attempts."""
    folder = lot_data_folder(ref, lot)
    root = objects.path(folder)
    if root is None:
        return
    for odd in objects.nameless(folder):
        yield attempt_of(odd.path.relative_to(root).parts[0]), odd.path


def _attempts_seen(objects: Objects, refs: Sequence[DatasetRef], lot: str) -> set[str]:
    seen = {attempt for ref in refs for attempt, _ in _data(objects, ref, lot)}
    return seen | {attempt for ref in refs for attempt, _ in _nameless(objects, ref, lot)}


def _made_manifests(
    objects: Objects, ref: DatasetRef, lot: str
) -> Iterator[tuple[str, StoredEntry]]:
    for state in (ManifestState.COMPLETE, ManifestState.EMPTY):
        folder = f"{lot_folder(ref, lot)}/state={state}"
        for entry in objects.list(folder):
            segment = entry.key.removeprefix(f"{folder}/").partition("/")[0]
            if segment.startswith(_ATTEMPT):
                yield attempt_of(segment), entry


def attempt_of(segment: str) -> str:
    """Return the attempt in a segment of a key, for any of its workers."""
    return segment.removeprefix(_ATTEMPT).partition(RETRY_MARK)[0]


def _remove(
    objects: Objects, ref: DatasetRef, lot: str, attempts: Collection[str], listed: Collection[str]
) -> dict[str, list[StoredEntry]]:
    for attempt, entry in list(_made_manifests(objects, ref, lot)):
        if attempt in attempts and entry.key not in listed:
            objects.delete(entry.key)
    gone: dict[str, list[StoredEntry]] = {}
    for attempt, entry in sorted(_data(objects, ref, lot), key=lambda pair: pair[1].key):
        if attempt in attempts and entry.key not in listed:
            objects.delete(entry.key)
            gone.setdefault(attempt, []).append(entry)
    for attempt, path in list(_nameless(objects, ref, lot)):
        if attempt in attempts:
            path.unlink(missing_ok=True)
    return gone

"""What failed attempts left behind: listed, so that it can be removed, and removed."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from penstock.arcs.commands import NoteAttempts
from penstock.arcs.reading import attempts_of, parts_of, read_manifest
from penstock.catalog.catalog import Catalog
from penstock.clock import format_time, system_clock
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.locks.commands.claims import Claimed
from penstock.lots.manifests import (
    RETRY_MARK,
    DatasetRef,
    Item,
    Manifest,
    encode,
    lot_data_folder,
    manifest_key,
)
from penstock.objects import Entry, Objects
from penstock.states import ManifestState, RunState


def write_partial(
    objects: Objects, refs: Sequence[DatasetRef], lot: str, attempt: str, comment: str
) -> tuple[str, ...]:
    """List what an attempt left behind in a manifest for each output; gives their keys."""
    return tuple(
        key
        for ref in refs
        if (key := _list_leftovers(objects, ref, lot, attempt, ManifestState.PARTIAL, comment))
    )


def failed_attempts(
    tx: Transaction, objects: Objects, refs: Sequence[DatasetRef], claim: Claimed
) -> list[str]:
    """Attempts that left data, have ended badly, and were never listed."""
    found = {attempt for ref in refs for attempt, _ in _data(objects, ref, claim.lot)}
    found.discard(claim.id)
    if not found:
        return []
    states: dict[str, str] = dict(tx.fetch("run_states", ids=sorted(found)))
    listed = {run_id for (run_id,) in tx.fetch("listed_attempts", ids=sorted(found))}
    bad = (RunState.FAILED, RunState.ABORTED)
    return [run for run in sorted(found - listed) if states.get(run, "") in bad]


def clean(
    catalog: Catalog,
    objects: Objects,
    refs: Sequence[DatasetRef],
    job_id: str,
    lot: str,
    published: str = "",
) -> int:
    """Remove what failed attempts on a lot left behind, but for parts that are still of use.

    So goes what the published attempt does not list: a worker that was lost may have written it.
    """
    with catalog.read() as tx:
        attempts = [a for a in attempts_of(tx, job_id, lot) if a.state == ManifestState.PARTIAL]
        kept = _kept(tx, objects, job_id, lot)
    removed = []
    for ref in refs:
        _remove(objects, ref, lot, {published, *(a.run_id for a in attempts)}, kept)
    for attempt in attempts:
        keys = []
        for ref in refs:
            key = _write(objects, ref, lot, attempt.run_id, ManifestState.REMOVED, (), "")
            keys.append(key)
            objects.delete(manifest_key(ref, lot, ManifestState.PARTIAL, attempt.run_id))
        removed.append((attempt.run_id, tuple(keys)))
    if removed:
        note = NoteAttempts(job_id, lot, tuple(removed), ManifestState.REMOVED)
        catalog.submit(note).result()
    return len(removed)


def _kept(tx: Transaction, objects: Objects, job_id: str, lot: str) -> set[str]:
    """The keys of data that something still lists: published versions, and parts that are done."""
    keys = [key for (key,) in tx.fetch("published_manifests", job_id=job_id, lot=lot)]
    keys += [
        noted.key for row in parts_of(tx, job_id, lot).values() for _, noted in row.named_notes
    ]
    kept: set[str] = set()
    while keys:
        try:
            manifest = read_manifest(objects, keys.pop())
        except NotFound:
            continue
        keys += [line.key for line in manifest.parts]
        kept |= {item.uri.removeprefix(f"{objects.url}/") for item in manifest.uris}
    return kept


def _list_leftovers(
    objects: Objects,
    ref: DatasetRef,
    lot: str,
    attempt: str,
    state: ManifestState,
    comment: str,
) -> str:
    found = sorted(
        (entry for name, entry in _data(objects, ref, lot) if name == attempt),
        key=lambda entry: entry.key,
    )
    items = tuple(Item(f"{objects.url}/{entry.key}", entry.size) for entry in found)
    return _write(objects, ref, lot, attempt, state, items, comment)


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


def _data(objects: Objects, ref: DatasetRef, lot: str) -> Iterator[tuple[str, Entry]]:
    """All data of a lot, each object with the attempt that wrote it."""
    folder = lot_data_folder(ref, lot)
    for entry in objects.list(folder):
        name = entry.key.removeprefix(f"{folder}/").partition("/")[0].removeprefix("attempt=")
        yield name.partition(RETRY_MARK)[0], entry


def _remove(
    objects: Objects, ref: DatasetRef, lot: str, attempts: Collection[str], kept: Collection[str]
) -> None:
    gone = [e for name, e in _data(objects, ref, lot) if name in attempts and e.key not in kept]
    for entry in gone:
        objects.delete(entry.key)

"""Provenance for display: traced versions with contents, arrivals and deposits."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice

from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import PenstockError
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.provenance.history import LotAt
from penstock.provenance.trace import FoundObject, FoundRun, TracedVersion, Walk
from penstock.provenance.verify import list_items, read_manifest
from penstock.schema.catalog import EntityId
from penstock.schema.provenance import (
    Arrived,
    Contents,
    Deposit,
    DepositedObject,
    File,
    LotVersion,
    Maker,
    Outside,
    Provenance,
)
from penstock.schema.shape import time_or_none
from penstock.states import ManifestState

Find = Callable[[Sequence[str]], Sequence[FoundObject]]  # all stored versions, by ARKs


class ArrivedObjects:
    """The first arrived objects of external lots, and their number."""

    def __init__(self, tx: Transaction, walk: Walk, most: int) -> None:
        outside = [node for node in walk.nodes.values() if node.run is None and node.lot]
        self._by_version: dict[str, tuple[int, list[Arrived]]] = {}
        for node in outside:
            which = {"dataset_id": node.version.dataset_id, "lot": node.lot}
            [(count,)] = tx.fetch("count_arrived_in_lot", **which)
            rows = tx.fetch("arrived_in_lot", **which, most=most) if count else []
            objects = [Arrived(u, s, m, format_time(t), format_time(a)) for u, s, m, t, a in rows]
            self._by_version[node.version.id] = count, objects

    def of(self, node: TracedVersion) -> tuple[int, list[Arrived]]:
        """Return those of one version."""
        return self._by_version.get(node.version.id, (0, []))


class ProvenanceBuilder:
    """A builder of provenance, with a limit of files for each version."""

    def __init__(
        self, walk: Walk, arrivals: ArrivedObjects, objects: Objects, find: Find, files: int
    ) -> None:
        self._walk = walk
        self._arrivals = arrivals
        self._objects = objects
        self._find = find
        self._files = files

    def build(self, version: LotAt) -> Provenance:
        """Return the provenance of a version of a lot."""
        return Provenance(
            namespace=version.name.namespace,
            dataset=version.name.dataset,
            lot=version.name.lot,
            version=version.version_id,
            as_of=time_or_none(version.as_of),
            is_current=version.is_current,
            is_whole=not self._walk.beyond,
            versions=[self._version(node) for node in self._walk.nodes.values()],
        )

    def _version(self, node: TracedVersion) -> LotVersion:
        version = node.version
        manifest = self._walk.manifests.get(version.id)
        contents = self._contents(manifest) if manifest is not None else None
        return LotVersion(
            id=version.id,
            namespace=version.namespace,
            dataset=version.name,
            lot=node.lot,
            number=version.number,
            depth=node.depth,
            published_at=time_or_none(version.published_at),
            run=self._maker(node.run) if node.run is not None else None,
            outside=self._outside(node) if version.run_id is None else None,
            deposits=[*_own_deposit(node.run), *self._deposits(node, contents)],
            contents=contents,
            inputs=node.inputs,
            is_cut=node.is_cut,
        )

    def _maker(self, run: FoundRun) -> Maker:
        ended, began, facet = run.ended_at, run.started_at, run.lots
        has_both = ended is not None and began is not None
        return Maker(
            id=run.id,
            job=EntityId(run.namespace, run.name),
            job_version=run.job_version_id,
            location=run.location,
            state=run.state,
            owner=self._walk.owners.get(run.id),
            attempt=facet.attempt if facet is not None else None,
            parts=self._walk.parts.get(run.id, 0),
            started_at=time_or_none(began),
            ended_at=time_or_none(ended),
            duration_ms=((ended or 0) - (began or 0)) // 1000 if has_both else None,
        )

    def _outside(self, node: TracedVersion) -> Outside:
        registration = self._walk.registration_of(node)
        count, objects = self._arrivals.of(node)
        return Outside(
            registered_by=registration.who if registration is not None else None,
            registered_at=format_time(registration.at) if registration is not None else None,
            arrived_count=count,
            arrived=objects,
        )

    def _deposits(self, node: TracedVersion, contents: Contents | None) -> list[Deposit]:
        batches = self._walk.batches_of(node)
        files = contents.files if contents is not None and batches else ()
        arks = sorted({file.ark for file in files if file.ark is not None})
        stored: dict[str, list[FoundObject]] = defaultdict(list)
        for each in self._find(arks) if arks else ():
            stored[each.batch_id].append(each)
        return [
            Deposit(
                batch=batch.id,
                collection=batch.collection,
                depositor=batch.submitter,
                objects=[
                    DepositedObject(o.ark, o.version, o.job_id, o.location, o.digest, o.run_id)
                    for o in stored[batch.id]
                ],
            )
            for batch in batches
        ]

    def _contents(self, row: ManifestRow) -> Contents:
        files: list[File] = []
        error = None
        if self._files:
            try:
                entries = list_items(
                    self._objects, read_manifest(self._objects, row.key, row.digest)
                )
                for entry in islice(entries, self._files):
                    item = entry.item
                    files.append(File(item.uri, item.size, item.digest, entry.part, item.ark))
            except PenstockError as refusal:
                error = str(refusal)
        return Contents(
            state=ManifestState(row.state),
            key=row.key,
            digest=row.digest,
            attempt=row.attempt,
            total_count=row.uris,
            bytes=row.bytes,
            files=files,
            error=error,
        )


def _own_deposit(run: FoundRun | None) -> list[Deposit]:
    deposit = run.deposit if run is not None else None
    if deposit is None or run is None:
        return []
    objects = []
    if deposit.ark is not None:
        objects.append(
            DepositedObject(
                deposit.ark,
                deposit.object_version,
                deposit.ingest_job,
                deposit.location,
                deposit.digest,
                run.id,
            )
        )
    return [Deposit(deposit.batch, run.name.removeprefix("ingest."), deposit.submitter, objects)]

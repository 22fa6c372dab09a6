"""From a derived lot back to the deposit: batch, depositor, ingest jobs, ARKs, files."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.arcs.commands import PublishLot
from penstock.catalog.commands import DatasetName
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import Batch
from penstock.locks.commands import ClaimLots, ClaimRef, WireJob
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import DatasetRef, Manifest
from penstock.schema.provenance import VerifyStepKind
from penstock.states import BatchState, ManifestState
from tests.acceptance.ingest_site import Site, row
from tests.acceptance.test_ingest_lots import deposit as some_missing
from tests.acceptance.test_ingest_lots import mend
from tests.contract.provenance_site import name_of, provenance, verify
from tests.invariants import assert_all_holds
from tests.web import content

FILES = {"map.csv": b"x,y\n1,2\n" * 100, "legend.txt": "Köln, 1571\n".encode()}


def deposited(site: Site) -> Batch:
    rows = [row(site.web.on(f"/in/{name}", content(body)), body) for name, body in FILES.items()]
    url = site.web.on("/in/batch.checkm", content(write(ManifestKind.FILES, rows)))
    [batch] = site.run(site.deposit(url))
    return batch


def derive(site: Site, namespace: str, lot: str) -> None:
    """Let a job read the lot of the batch, and publish an empty lot."""
    catalog, objects = site.plane.catalog, site.plane.objects
    maps, sheets = DatasetName(namespace, "maps"), DatasetName(namespace, "sheets")
    catalog.submit(WireJob(namespace, "cut", (maps,), (sheets,))).result()
    [claim] = catalog.submit(ClaimLots(namespace, "cut", "w1", lots=(lot,))).result()
    ref = DatasetRef(namespace, "sheets")
    empty = Manifest(state=ManifestState.EMPTY, lot=lot, dataset=ref, attempt=claim.id)
    note = put_manifest(objects, empty)
    catalog.submit(PublishLot(ClaimRef(claim.id, claim.token), (note,))).result()


def test_derived_lot_is_traced_to_depositor_and_files(site: Site) -> None:
    batch = deposited(site)
    namespace = site.context.collections.get("maps").namespace
    derive(site, namespace, batch.id)
    found = provenance(site.plane, name_of(site.plane, namespace, "sheets", batch.id))
    sheets, maps = found.versions
    assert (sheets.dataset, maps.dataset, maps.lot) == ("sheets", "maps", batch.id)
    assert sheets.inputs == (maps.id,)
    [deposit] = maps.deposits
    assert (deposit.batch, deposit.collection) == (batch.id, "maps")
    assert deposit.depositor == batch.submission.submitter
    jobs = {job.id: job for job in site.jobs(batch)}
    assert {each.ingest_job for each in deposit.objects} == set(jobs)
    for each in deposit.objects:
        stored = site.stored(jobs[each.ingest_job or ""])
        assert (each.ark, each.object_version, each.run) == (stored.ark, 1, stored.run_id)
        assert each.digest == stored.digest
    assert maps.contents is not None
    digests = {file.digest for file in maps.contents.files}
    assert {f"sha-512:{hashlib.sha512(body).hexdigest()}" for body in FILES.values()} <= digests
    assert {file.ark for file in maps.contents.files} == {each.ark for each in deposit.objects}


def test_lot_before_the_update_report_has_the_same_deposit(site: Site) -> None:
    batch = some_missing(site, FILES, "legend.txt")
    site.run(batch)
    namespace = site.context.collections.get("maps").namespace
    name = name_of(site.plane, namespace, "maps", batch.id)
    before, then = provenance(site.plane, name), site.clock()
    [deposit] = before.versions[0].deposits
    assert (deposit.batch, len(deposit.objects)) == (batch.id, 1)
    assert mend(site, batch, FILES).status is BatchState.COMPLETED
    assert provenance(site.plane, name, then).versions == before.versions
    [now] = provenance(site.plane, name).versions
    assert [len(each.objects) for each in now.deposits] == [2]


def test_upstream_verification_reads_deposits(site: Site) -> None:
    batch = deposited(site)
    namespace = site.context.collections.get("maps").namespace
    derive(site, namespace, batch.id)
    name = name_of(site.plane, namespace, "sheets")
    end = verify(site.plane, name, upstream=True)[-1]
    assert (end.kind, end.done.faults, end.done.objects) == (VerifyStepKind.END, 0, len(FILES))
    assert_all_holds(site.plane.settings)
    depository = site.context.storage.depository(site.context.collections.get("maps"))
    objects = site.stored(site.jobs(batch)[0])
    file = depository.files(objects.ark)[0]
    uri = f"{depository.url}/{file.key}"
    with damaged(site, uri):
        steps = verify(site.plane, name, upstream=True)
        assert all(step.kind is not VerifyStepKind.FAULT for step in verify(site.plane, name))
    faults = [step for step in steps if step.kind is VerifyStepKind.FAULT]
    assert {fault.where for fault in faults} == {uri, objects.ark}


@contextmanager
def damaged(site: Site, uri: str) -> Iterator[None]:
    """Change a byte of a file in the object store while the block lasts."""
    objects = site.plane.objects
    key = uri.removeprefix(f"{objects.url}/")
    data = objects.get(key)
    objects.put(key, bytes([data[0] ^ 1]) + data[1:])
    yield
    objects.put(key, data)

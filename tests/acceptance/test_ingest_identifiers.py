"""Which object a deposit is of: ARKs that are in use, whoever gave them, and local ids."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.ingest.archive.arks import ark_of
from penstock.ingest.archive.ocfl.inventory import NewFile, sha512
from penstock.ingest.archive.register import list_versions
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import IngestJob
from penstock.ingest.stages import STAGE_NAMES
from penstock.ingest.stages.recording import find_unrecorded
from penstock.schema.ingest import Minting
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import Site, row
from tests.web import content, status

SHOULDER = "ark:/99999/fk4"


def next_arks(count: int) -> list[str]:
    """The ARKs that a new site would mint first."""
    return [ark_of(SHOULDER, number) for number in range(1, count + 1)]


def deposited(site: Site, name: str, body: bytes = b"x", **rest: Any) -> IngestJob:
    """The job of a deposit of a file with this name, when it has ended."""
    [batch] = site.run(site.deposit(site.web.on(f"/{name}", content(body)), **rest))
    return site.only_job(batch)


def completed(site: Site, name: str, **rest: Any) -> str:
    """The ARK of a deposit that has completed."""
    job = deposited(site, name, **rest)
    assert job.status is IngestState.COMPLETED, job.message
    assert job.identifiers.primary is not None
    return job.identifiers.primary


def store_unknown(
    site: Site, collection: str, ark: str, key: str = "another/0", message: str = ""
) -> None:
    """Store an object of which the database, put back from a backup, knows nothing."""
    file = site.folder / "lost.csv"
    site.folder.mkdir(exist_ok=True)
    file.write_bytes(b"lost")
    told = NewFile("producer/lost.csv", file, sha512(b"lost"), 4)
    depository = site.context.storage.depository(site.context.collections.get(collection))
    depository.store(ark, key, [told], update=False, who="jo", message=message, now=site.clock())


def test_an_ark_that_stands_in_a_manifest_is_not_minted_for_another_row(site: Site) -> None:
    given, minted = next_arks(2)
    rows = [
        row(site.web.on("/minted.csv", content(b"minted"))),
        row(site.web.on("/given.csv", content(b"given")), primary_id=given),
    ]
    listed = site.web.on("/batch.checkm", content(write(ManifestKind.FILES, rows)))
    with site.working(concurrency=1):
        batch = site.ended(site.deposit(listed))
    assert batch.status is BatchState.COMPLETED
    arks = {name: job.identifiers.primary for name, job in site.by_name(batch).items()}
    assert arks == {"minted.csv": minted, "given.csv": given}
    assert (site.versions(given), site.versions(minted)) == ([1], [1])


def test_an_ark_is_one_object_however_it_is_written(site: Site) -> None:
    site.make_collection("theirs", namespace="theirs", dataset="theirs")
    ark = completed(site, "first.csv")
    bare = ark.replace("ark:/", "ark:")
    assert completed(site, "second.csv", primary_id=bare) == ark
    url = site.web.on("/third.csv", content(b"third"))
    listed = write(ManifestKind.FILES, [row(url, primary_id=ark)]).replace(b"ark:/", b"ark:")
    assert completed(site, "batch.checkm", body=listed) == ark
    assert site.versions(ark) == [3, 2, 1]
    refused = deposited(site, "fourth.csv", collection="theirs", primary_id=bare)
    assert refused.message.startswith(f"{ark} belongs to another namespace than 'theirs'")


def test_an_ark_of_an_unrecorded_object_is_skipped(site: Site, tmp_path: Path) -> None:
    elsewhere = f"file://{tmp_path / 'elsewhere'}"
    site.make_collection("theirs", dataset="theirs", storage=elsewhere)
    lost = next_arks(3)
    for name, ark in zip(("maps", "theirs", "maps"), lost, strict=True):
        store_unknown(site, name, ark)
    minted = completed(site, "new.csv", local_id="k1")
    assert minted == next_arks(4)[-1]
    assert completed(site, "newer.csv", local_id="k1") == minted
    assert site.versions(minted) == [2, 1]
    assert [site.versions(ark) for ark in lost] == [[], [], []]
    assert site.content(lost[0]) == {"lost.csv": b"lost"}


def test_a_deposit_keeps_its_ark_after_a_database_restore(
    site: Site,
) -> None:
    batch = site.deposit(site.web.on("/again.csv", content(b"again")))
    with site.working("batch-pending", "pending", "estimating", "provisioning", "downloading"):
        job = site.reach(batch, IngestState.PROCESSING)
    [ark] = next_arks(1)
    store_unknown(site, "maps", ark, key=job.configuration.key)
    site.run(batch)
    assert site.only_job(batch).identifiers.primary == ark
    assert site.versions(ark) == [1]


def test_a_version_that_the_database_has_forgotten_is_recorded_with_the_next(site: Site) -> None:
    ark = completed(site, "first.csv")
    store_unknown(site, "maps", ark, message="bid0000000777 jid0000000778")
    assert completed(site, "third.csv", primary_id=ark) == ark
    with site.plane.catalog.read() as tx:
        third, second, first = list_versions(tx, ark)
        assert tx.fetch("broken_deposits", most=10) == []
    assert (first.version, second.version, third.version) == (1, 2, 3)
    assert (second.key, second.batch_id, second.job_id) == (
        "another/0",
        "bid0000000777",
        "jid0000000778",
    )
    assert (second.files, second.bytes) == (1, 4)


def test_a_version_that_its_own_job_has_still_to_record_is_left_to_it(site: Site) -> None:
    ark = completed(site, "first.csv")
    late = site.deposit(site.web.on("/late.csv", content(b"late")), primary_id=ark)
    before = [name for name in STAGE_NAMES if name != "recording"]
    with site.working(*before):
        job = site.reach(late, IngestState.RECORDING)
    stored = site.context.storage.depository(site.context.collections.get("maps")).find(
        ark, job.configuration.key
    )
    assert stored is not None
    found = find_unrecorded(
        site.context, site.context.collections.get("maps"), replace(stored, version=3)
    )
    assert list(found) == []
    site.run(late)
    site.check_recorded(site.only_job(late))


def test_a_storage_that_is_away_does_not_stop_other_collections(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    site.make_collection("away", dataset="away", storage=f"file://{tmp_path / 'file' / 'below'}")
    assert completed(site, "new.csv") == next_arks(1)[0]


def test_hyphens_in_an_ark_mean_nothing(site: Site) -> None:
    ark = "ark:/99999/fk4abc"
    assert completed(site, "first.csv", primary_id="ark:/99999/fk4-ab-c") == ark
    assert completed(site, "second.csv", primary_id="ark:99999/fk4a-bc") == ark
    listed = write(ManifestKind.FILES, [row(site.web.on("/x", content(b"x")), primary_id=ark)])
    listed = listed.replace(b"fk4abc", b"f-k4abc")
    assert completed(site, "batch.checkm", body=listed) == ark
    assert site.versions("ark:/99999/fk4abc-") == [3, 2, 1]


def test_a_minter_that_repeats_a_taken_ark_fails_the_job(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = "ark:/99999/fk4taken"
    site.web.on(f"/ezid/shoulder/{SHOULDER}", status(201, body=f"success: {taken}".encode()))
    account: dict[str, Any] = {
        "ezid_url": f"{site.web.url}/ezid",
        "ezid_user": "u",
        "ezid_password": "p",
    }
    settings = dataclasses.replace(site.context.runtime.settings, **account)
    monkeypatch.setattr(site.context.outbound, "settings", settings)
    site.make_collection("minted", minting=Minting.EZID)
    store_unknown(site, "minted", taken)

    job = deposited(site, "map.csv", collection="minted")

    assert job.status is IngestState.FAILED
    assert "EZID mints ARKs that are in use" in job.message
    assert taken in job.message
    assert "resume the job" in job.message
    assert len(site.web.requests_to(f"/ezid/shoulder/{SHOULDER}", "POST")) == 2

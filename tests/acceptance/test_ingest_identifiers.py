"""Which object a deposit is of: ARKs that are in use, whoever gave them, and local ids."""

from typing import Any

from penstock.ingest.receiving.checkm import ManifestKind, write
from penstock.ingest.storing.minting import ark_of
from penstock.ingest.values import IngestJob
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import Site, row
from tests.web import content

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


def test_an_ark_that_was_given_by_hand_is_not_minted(site: Site) -> None:
    site.make_collection("theirs", namespace="theirs", dataset="theirs")
    arks = next_arks(3)
    for number, ark in enumerate(arks[:2]):
        assert completed(site, f"{number}.csv", primary_id=ark) == ark
    assert completed(site, "theirs.csv", collection="theirs") == arks[2]
    assert [site.versions(ark) for ark in arks] == [[1], [1], [1]]


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


def test_a_manifest_with_a_primary_id_that_is_no_ark_is_refused(site: Site) -> None:
    url = site.web.on("/a.csv", content(b"a"))
    listed = write(ManifestKind.FILES, [row(url, primary_id="ark:/99999/fk4x")])
    listed = listed.replace(b"ark:/99999/fk4x", b"../../x")
    [batch] = site.run(site.deposit(site.web.on("/batch.checkm", content(listed))))
    assert (batch.status, batch.jobs) == (BatchState.FAILED, 0)
    assert batch.message == "line 6: '../../x' is not an ARK; write it like ark:/99999/fk4rx9d523"


def test_a_local_id_is_a_namespaces_own(site: Site) -> None:
    site.make_collection("ours", namespace="ours", dataset="ours", owner="library")
    site.make_collection("theirs", namespace="theirs", dataset="theirs", owner="library")
    first = completed(site, "ours.csv", collection="ours", local_id="k1")
    other = completed(site, "theirs.csv", collection="theirs", local_id="k1")
    assert first != other
    assert completed(site, "more.csv", collection="ours", local_id="k1") == first
    assert (site.versions(first), site.versions(other)) == ([2, 1], [1])

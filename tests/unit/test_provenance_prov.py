"""PROV-JSON as another program reads it."""

import json

from prov.constants import (
    PROV_ASSOCIATION,
    PROV_ATTRIBUTION,
    PROV_DERIVATION,
    PROV_GENERATION,
    PROV_MEMBERSHIP,
    PROV_USAGE,
)
from prov.model import ProvActivity, ProvAgent, ProvDocument, ProvEntity

from penstock.provenance.prov import to_prov
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
from penstock.states import ManifestState

MADE, RAW, CUT = (f"{n}{n}{n}{n}{n}{n}{n}{n}-0000-8000-a000-000000000000" for n in "123")
RUN = "01a1e13e-4044-78e6-ac68-e6d7d9dd6c1f"
AT = "2026-11-15T12:00:00.000Z"
ODD = "file:///tmp/a b/100%/ü?.txt"


def version(key: str, **more: object) -> LotVersion:
    nothing: dict[str, object] = {
        "lot": "1",
        "number": 1,
        "depth": 0,
        "published_at": AT,
        "run": None,
        "outside": None,
        "deposits": [],
        "contents": None,
        "inputs": (),
        "is_cut": False,
    }
    return LotVersion(id=key, namespace="shop", dataset="d", **{**nothing, **more})  # type: ignore[arg-type]


def document() -> ProvDocument:
    """The PROV document of a lot that a run made of a deposit and an unfollowed version."""
    run = Maker(
        RUN, EntityId("shop", "clean"), CUT, "http://git/clean", "COMPLETED", "worker 1", 2, 3,
        AT, AT, 0,
    )  # fmt: skip
    files = [File(ODD, 3, "sha-256:ab", None, None), File("s3://b/x", None, None, "p", "ark:/1/2")]
    contents = Contents(ManifestState.COMPLETE, "k", "d", "a", 2, 3, files)
    stored = DepositedObject("ark:/99999/fk4", 2, "jid-1", "ocfl/x", "cd", None)
    deposit = Deposit("bid-1", "maps", "jo@example.org", [stored])
    outside = Outside("ingest", AT, 1, [Arrived("s3://in/x", 3, "etag", AT, AT)])
    versions = [
        version(MADE, run=run, contents=contents, inputs=(RAW, CUT)),
        version(RAW, outside=outside, deposits=[deposit]),
    ]
    found = Provenance("shop", "d", "1", MADE, None, True, True, versions)
    text = json.dumps(to_prov(found))
    return ProvDocument.deserialize(content=text, format="json")


def named(found: ProvDocument, kind: object) -> set[tuple[str, ...]]:
    """Return the relations of a kind, by their ends."""
    return {
        tuple(str(value).removeprefix("penstock:") for _, value in record.formal_attributes[:2])
        for record in found.get_records()
        if record.get_type() == kind
    }


def test_prov_library_reads_and_writes_the_same() -> None:
    found = document()
    again = ProvDocument.deserialize(content=found.serialize(format="json"), format="json")
    assert again == found
    kinds = [len(list(found.get_records(kind))) for kind in (ProvEntity, ProvActivity, ProvAgent)]
    # Three versions, two files, one that arrived, a plan, a batch and an object.
    assert kinds == [9, 1, 3]


def test_relations_connect_entities_activities_and_agents() -> None:
    found = document()
    made, raw, cut, run = f"version/{MADE}", f"version/{RAW}", f"version/{CUT}", f"run/{RUN}"
    stored, batch = "object/ark%3A%2F99999%2Ffk4%2Fv2", "batch/bid-1"
    assert named(found, PROV_USAGE) == {(run, raw), (run, cut)}
    assert named(found, PROV_GENERATION) == {(made, run)}
    assert named(found, PROV_DERIVATION) == {
        (made, raw),
        (made, cut),
        (raw, "file/s3%3A%2F%2Fin%2Fx"),
        (raw, batch),
        (raw, stored),
        (stored, batch),
    }
    assert named(found, PROV_ASSOCIATION) == {(run, "agent/worker%201")}
    assert named(found, PROV_ATTRIBUTION) == {
        (raw, "agent/ingest"),
        (batch, "agent/jo%40example.org"),
    }
    assert len(named(found, PROV_MEMBERSHIP)) == 2


def test_files_keep_their_uri_size_and_digest() -> None:
    found = document()
    [entity] = [each for each in found.get_records(ProvEntity) if ODD in str(each.attributes)]
    said = {str(key): str(value) for key, value in entity.attributes}
    assert said["prov:location"] == ODD
    assert (said["penstock:size"], said["penstock:digest"]) == ("3", "sha-256:ab")

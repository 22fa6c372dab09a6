"""Whose an ARK is: minted once, and the namespace's own whose deposit has it."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.config import Settings
from penstock.errors import Conflict
from penstock.ingest.archive.arks import ark_of
from penstock.ingest.archive.register import (
    DeleteWriter,
    Identified,
    Identify,
    Offer,
    RecordDeposit,
    ReserveArks,
    StoredRow,
    TakeOver,
)
from penstock.plane import Plane

SHOULDER = "ark:/99999/fk4"
FIRST, SECOND, THIRD = (ark_of(SHOULDER, number) for number in (1, 2, 3))


@pytest.fixture
def plane(database_url: str) -> Iterator[Plane]:
    with Plane.open(Settings(database=database_url)) as opened:
        yield opened


def asked(
    key: str,
    *local_ids: str,
    primary: str | None = None,
    namespace: str = "ours",
    storage: str = "",
    mints: bool = True,
    taken_up: Offer | None = None,
) -> Identify:
    """Whoever has to know the ARK of a deposit."""
    return Identify(
        key=key,
        job_id=f"job of {key}",
        namespace=namespace,
        storage=storage,
        owner="library",
        local_ids=local_ids,
        primary=primary,
        shoulder=SHOULDER,
        spin=(lambda number: ark_of(SHOULDER, number)) if mints else None,
        taken_up=taken_up,
    )


def identified(plane: Plane, key: str, *local_ids: str, **rest: Any) -> str | None:
    """The ARK that a deposit has; it takes up what it is offered."""
    found = answered(plane, key, *local_ids, **rest)
    if found.offer is not None:
        found = answered(plane, key, *local_ids, taken_up=found.offer, **rest)
    return found.ark


def answered(plane: Plane, key: str, *local_ids: str, **rest: Any) -> Identified:
    return plane.catalog.submit(asked(key, *local_ids, **rest)).result()


def record(plane: Plane, key: str, ark: str, namespace: str = "ours", storage: str = "") -> None:
    """Write down that a deposit has stored a version, which is the object's first."""
    row = StoredRow(
        ark=ark,
        version=1,
        key=key,
        namespace=namespace,
        collection="maps",
        batch_id="bid",
        job_id=f"job of {key}",
        location="",
        digest="",
        files=1,
        bytes=1,
        title="",
        run_id="00000000-0000-0000-0000-000000000001",
        at=0,
    )
    assert plane.catalog.submit(RecordDeposit(row, storage, (), ())).result()


def test_a_named_ark_is_not_minted_for_another_deposit(plane: Plane) -> None:
    assert identified(plane, "by hand", primary=FIRST) == FIRST
    assert identified(plane, "minted") == SECOND
    assert identified(plane, "theirs", namespace="theirs") == THIRD


def test_a_named_ark_is_not_minted_concurrently(plane: Plane) -> None:
    deposits = [asked("by hand", primary=FIRST), asked("minted"), asked("more", primary=THIRD)]
    sent = [plane.catalog.submit(deposit) for deposit in deposits]
    found = [each.result() for each in sent]
    assert [each.ark or (each.offer and each.offer.ark) for each in found] == [FIRST, SECOND, THIRD]


def test_an_offered_ark_that_was_named_meanwhile_is_not_minted(
    plane: Plane,
) -> None:
    offer = answered(plane, "minted", "k1").offer
    assert offer == Offer(FIRST, 1)
    assert identified(plane, "by hand", primary=FIRST) == FIRST
    assert answered(plane, "minted", "k1", taken_up=offer) == (None, None, Offer(SECOND, 2))
    assert identified(plane, "minted", "k1") == THIRD


def test_an_offer_not_taken_up_is_never_repeated(plane: Plane) -> None:
    assert answered(plane, "minted", "k1").offer == Offer(FIRST, 1)
    assert identified(plane, "minted", "k1") == SECOND
    assert identified(plane, "more", "k1") == SECOND
    assert identified(plane, "theirs", primary=FIRST, namespace="theirs") == FIRST


def test_minting_skips_any_number_of_named_arks(plane: Plane) -> None:
    arks = [ark_of(SHOULDER, number) for number in range(1, 252)]
    sent = [plane.catalog.submit(asked(f"by hand {ark}", primary=ark)) for ark in arks[:250]]
    assert [each.result().ark for each in sent] == arks[:250]
    with Plane.open(plane.settings) as started_later:
        assert identified(started_later, "minted") == arks[250]


def test_a_deposit_that_comes_again_has_the_ark_that_it_had(plane: Plane) -> None:
    assert [identified(plane, key) for key in ("a", "b", "a")] == [FIRST, SECOND, FIRST]


def test_a_named_ark_stays_in_use_after_abandon(plane: Plane) -> None:
    identified(plane, "by hand", "k1", primary=FIRST)
    plane.catalog.submit(DeleteWriter(FIRST, "by hand")).result()
    assert identified(plane, "minted") == SECOND


def test_an_ark_that_is_being_written_belongs_to_its_namespace(plane: Plane) -> None:
    identified(plane, "ours", primary=FIRST)
    with pytest.raises(Conflict, match=f"{FIRST} belongs to another namespace than 'theirs'"):
        identified(plane, "theirs", primary=FIRST, namespace="theirs")
    plane.catalog.submit(TakeOver(FIRST, "more", "job of more", instead_of="ours")).result()
    with pytest.raises(Conflict, match="belongs to another namespace"):
        identified(plane, "theirs", primary=FIRST, namespace="theirs")


def test_an_ark_under_which_nothing_was_stored_is_free_again(plane: Plane) -> None:
    identified(plane, "ours", primary=FIRST)
    plane.catalog.submit(DeleteWriter(FIRST, "ours")).result()
    assert identified(plane, "theirs", primary=FIRST, namespace="theirs") == FIRST
    record(plane, "theirs", FIRST, namespace="theirs")
    with pytest.raises(Conflict, match=f"{FIRST} belongs to another namespace than 'ours'"):
        identified(plane, "ours", primary=FIRST)


def test_an_object_has_no_versions_in_two_storages(plane: Plane) -> None:
    identified(plane, "ours", primary=FIRST, storage="s3://wrong")
    assert identified(plane, "ours", primary=FIRST, storage="s3://right") == FIRST
    record(plane, "ours", FIRST, storage="s3://right")
    assert identified(plane, "more", primary=FIRST, storage="s3://right") == FIRST
    with pytest.raises(Conflict, match=f"{FIRST} is kept in another storage than .* to the coll"):
        identified(plane, "elsewhere", primary=FIRST, storage="")


def test_an_ark_minted_elsewhere_that_is_in_use_is_refused(plane: Plane) -> None:
    identified(plane, "by hand", primary=FIRST)
    assert identified(plane, "minted", mints=False) is None
    with pytest.raises(Conflict, match="is in use here already; resume the job"):
        identified(plane, "minted", mints=False, taken_up=Offer(FIRST))
    for _ in range(2):
        assert identified(plane, "minted", mints=False, taken_up=Offer(SECOND)) == SECOND
    assert identified(plane, "minted", mints=False) == SECOND
    assert identified(plane, "ours") == THIRD


def test_hyphens_mean_nothing_in_what_is_given_and_minted(plane: Plane) -> None:
    given = FIRST.replace("fk4", "fk4-")
    plane.catalog.submit(ReserveArks("ours", (given,))).result()
    assert identified(plane, "minted") == SECOND
    assert identified(plane, "by hand", primary=given) == FIRST


def test_a_local_id_stands_for_an_object_of_its_namespace(plane: Plane) -> None:
    assert identified(plane, "ours", "k1", "k2") == FIRST
    assert identified(plane, "theirs", "k1", namespace="theirs") == SECOND
    assert identified(plane, "more", "k2") == FIRST
    assert identified(plane, "more of theirs", "k1", namespace="theirs") == SECOND

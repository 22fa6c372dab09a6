"""Deposits that say more than some queue or index can keep: they stop nobody, themselves included."""

import random

import pytest

from penstock.errors import Invalid
from penstock.ingest.receiving.checkm import ManifestKind, write
from penstock.ingest.values import Batch, NewJob
from penstock.states import BatchState
from tests.acceptance.ingest_site import Site, row
from tests.web import content


def long_text(chars: int) -> str:
    """Text that no database makes shorter."""
    chance = random.Random(7)
    return "".join(chr(chance.randrange(0x4E00, 0x9FA5)) for _ in range(chars))


@pytest.mark.parametrize("folders", [36, 60])
def test_an_object_with_a_very_long_url_is_recorded(site: Site, folders: int) -> None:
    chance = random.Random(7)
    names = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=99)) for _ in range(folders)]
    batch = site.deposit(site.web.on(f"/{'/'.join(names)}/a.csv", content(b"a")))
    assert [each.status for each in site.run(batch)] == [BatchState.COMPLETED]


def test_the_longest_local_id_is_kept_and_a_longer_one_is_refused(site: Site) -> None:
    url = site.web.on("/a.csv", content(b"a"))
    batch = site.deposit(url, local_id=long_text(333))
    assert [each.status for each in site.run(batch)] == [BatchState.COMPLETED]
    with pytest.raises(Invalid, match="has 1,002 bytes; at most 1,000 are taken"):
        site.deposit(url, local_id=long_text(334))


def test_a_batch_that_the_queue_cannot_keep_fails_and_holds_up_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_jobs = site.shop.store.add_jobs

    def refuse(batch: Batch, jobs: list[NewJob]) -> Batch:
        if batch.id == large.id:
            raise Invalid("a change has 2000000 bytes, but the queue takes 1000000")
        return add_jobs(batch, jobs)

    monkeypatch.setattr(site.shop.store, "add_jobs", refuse)
    rows = [row(site.web.on("/a.csv", content(b"a")))]
    large = site.deposit(site.web.on("/b.checkm", content(write(ManifestKind.FILES, rows))))
    small = site.deposit(site.web.on("/a.csv", content(b"a")))
    failed, completed = site.run(large, small)
    assert (failed.status, completed.status) == (BatchState.FAILED, BatchState.COMPLETED)
    assert failed.message == "a change has 2000000 bytes, but the queue takes 1000000"
    assert any("failed, nothing was stored" in subject for subject in site.letters())

"""Who, what, when and where: given, inherited, cleared, or read from the depositor's own file."""

from typing import Any

import pytest

from penstock.errors import Invalid
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import IngestJob
from penstock.schema.ingest import ErcPart, SubmissionMode
from penstock.states import IngestState
from tests.acceptance.ingest_site import Site, row
from tests.acceptance.test_ingest_flow import MAP, tarred, zipped
from tests.web import content

ERC = b"""erc:
# as a depositor writes it
who: Braun, Georg;
  Hogenberg, Frans
what: Civitates 100%25
when: 1572
where: ark:/99999/fk4given1
where: loc1
where: (:unas)
"""


def deposit(site: Site, name: str, body: bytes, **rest: Any) -> IngestJob:
    url = site.web.on(f"/{name}", content(body))
    [batch] = site.run(site.deposit(url, **rest))
    return site.only_job(batch)


def erc_of(site: Site, job: IngestJob) -> list[str]:
    described = site.content(job.identifiers.primary, part="system")
    return described["mrt-erc.txt"].decode().splitlines()


def test_an_update_keeps_the_description(site: Site) -> None:
    told = {"who": "Ann", "what": "Köln", "when": "1571", "where": "shelf 3"}
    deposit(site, "map.csv", MAP, local_id="k1", **told)

    job = deposit(site, "more.csv", b"1", local_id="k1", mode=SubmissionMode.UPDATE)

    assert erc_of(site, job) == [
        *("erc:", "who: Ann", "what: Köln", "when: 1571"),
        *(f"where: {job.identifiers.primary}", "where: k1", "where: shelf 3"),
    ]
    assert site.stored(job).title == "Köln"


def test_an_update_changes_only_its_own_fields(site: Site) -> None:
    deposit(site, "map.csv", MAP, local_id="k1", who="Ann", what="Köln", when="1571")

    job = deposit(site, "b.csv", b"1", local_id="k1", mode=SubmissionMode.UPDATE, when="1572")

    assert erc_of(site, job)[1:4] == ["who: Ann", "what: Köln", "when: 1572"]


def test_an_update_clears_the_named_fields(site: Site) -> None:
    deposit(site, "map.csv", MAP, local_id="k1", who="Ann", what="Köln", where="shelf")

    clear = (ErcPart.WHAT, ErcPart.WHERE)
    job = deposit(site, "b.csv", b"1", local_id="k1", mode=SubmissionMode.UPDATE, clear=clear)

    assert erc_of(site, job) == [
        *("erc:", "who: Ann", "what: (:unas)", "when: (:unas)"),
        *(f"where: {job.identifiers.primary}", "where: k1"),
    ]
    assert site.stored(job).title == "b.csv"


def test_a_part_cannot_be_given_and_cleared(site: Site) -> None:
    with pytest.raises(Invalid, match="what is both given and cleared"):
        deposit(site, "map.csv", MAP, what="Köln", clear=(ErcPart.WHAT,))


def test_a_new_version_without_update_inherits_nothing(site: Site) -> None:
    deposit(site, "map.csv", MAP, local_id="k1", who="Ann", what="Köln")

    job = deposit(site, "b.csv", b"1", local_id="k1")

    assert erc_of(site, job)[1:3] == ["who: (:unas)", "what: (:unas)"]


def test_the_description_in_a_container_is_read(site: Site) -> None:
    job = deposit(site, "maps.zip", zipped({"map.csv": MAP, "mrt-erc.txt": ERC}))

    assert job.identifiers.primary == "ark:/99999/fk4given1"
    assert job.identifiers.local_id == ("loc1",)
    assert erc_of(site, job) == [
        *("erc:", "who: Braun, Georg; Hogenberg, Frans", "what: Civitates 100%25", "when: 1572"),
        *("where: ark:/99999/fk4given1", "where: loc1"),
    ]
    assert site.stored(job).title == "Civitates 100%"
    again = deposit(site, "again.csv", b"2", local_id="loc1")
    assert again.identifiers.primary == "ark:/99999/fk4given1"


def test_the_description_in_a_manifest_is_read(site: Site) -> None:
    files = {"map.csv": MAP, "mrt-erc.txt": ERC}
    rows = [row(site.web.on(f"/in/{name}", content(body))) for name, body in files.items()]
    job = deposit(site, "object.checkm", write(ManifestKind.OBJECT, rows))

    assert job.identifiers.primary == "ark:/99999/fk4given1"
    assert erc_of(site, job)[3] == "when: 1572"


def test_the_submission_wins_over_the_description_in_a_container(site: Site) -> None:
    packed = tarred({"map.csv": MAP, "mrt-erc.txt": ERC})
    job = deposit(site, "maps.tgz", packed, what="Mine", local_id="k9", primary_id="ark:/1234x/b")

    assert job.identifiers.primary == "ark:/1234x/b"
    assert job.identifiers.local_id == ("k9",)
    assert erc_of(site, job)[1:4] == [
        *("who: Braun, Georg; Hogenberg, Frans", "what: Mine", "when: 1572")
    ]


def test_the_short_form_of_a_description_is_read(site: Site) -> None:
    short = b"erc: Ann | Maps | 2026 | loc7\n"
    job = deposit(site, "maps.zip", zipped({"map.csv": MAP, "mrt-erc.txt": short}))

    assert job.identifiers.local_id == ("loc7",)
    assert erc_of(site, job)[1:4] == ["who: Ann", "what: Maps", "when: 2026"]


def test_a_single_file_is_not_a_description(site: Site) -> None:
    job = deposit(site, "mrt-erc.txt", ERC)

    assert job.identifiers.local_id == ()
    assert erc_of(site, job)[1] == "who: (:unas)"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"who: \xff\n", "mrt-erc.txt is not UTF-8"),
        (b"who: Ann\nwithout a label\n", "mrt-erc.txt, line 2 has no label"),
        (b"where: ark:/x\n", "is not an ARK"),
    ],
)
def test_a_description_that_cannot_be_read_fails_the_job(
    site: Site, body: bytes, words: str
) -> None:
    job = deposit(site, "maps.zip", zipped({"map.csv": MAP, "mrt-erc.txt": body}))

    assert job.status is IngestState.FAILED
    assert words in job.message

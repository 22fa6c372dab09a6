"""Claims of an arc's lots over HTTP: its engine makes them, nobody else does."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors.arc_site import ArcSite, arc, arc_site

LOT = "20261115PT1H00"
CLAIMS = ("namespaces", "shop", "jobs", "make", "claims")


@pytest.fixture
def site(database_url: str) -> Iterator[ArcSite]:
    with arc_site(database_url) as made:
        made.register("tick", LOT)
        yield made


@pytest.mark.parametrize(
    "asked",
    [{}, {"lots": [LOT]}, {"inputs": [{"namespace": "shop", "name": "raw"}], "outputs": []}],
    ids=["any", "one", "wired"],
)
def test_the_lots_of_an_arc_are_claimed_by_its_engine_alone(
    site: ArcSite, asked: dict[str, Any]
) -> None:
    refusal = site.refused("POST", *CLAIMS, status=409, owner="ann", **asked)
    assert "penstock arcs run shop/make LOT" in refusal
    assert site.call("GET", *arc("make"))["counts"]["ready"] == 1
    assert site.run("make", LOT)


def test_the_job_of_an_arc_that_is_forgotten_is_claimed_like_any_other(site: ArcSite) -> None:
    site.call("DELETE", *arc("make"))
    (claim,) = site.call("POST", *CLAIMS, json={"owner": "ann"})["claims"]
    assert claim["lot"] == LOT

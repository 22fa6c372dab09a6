"""A version of a dataset has one interval, and no lots of another interval."""

from collections.abc import Iterator

import pytest

from penstock.arcs.commands import ApplyArc
from penstock.arcs.spec import Arc, Input, Output, Workload
from penstock.errors import Conflict, Invalid
from tests.contract.lot_site import Site, hours, open_site

pytestmark = pytest.mark.one_database

LOT = hours(0, 1)[0]


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    with open_site(database_url) as site:
        yield site


def declare(site: Site, name: str, reads: tuple[str, ...], output: Output) -> None:
    arc = Arc(
        name=name,
        namespace="ns",
        inputs=tuple(Input(dataset=each) for each in reads),
        outputs=(output,),
        workload=Workload(function="some.module:work"),
    )
    site.do(ApplyArc("ann", arc))


def test_a_lot_of_another_interval_cannot_be_registered(site: Site) -> None:
    declare(site, "make", ("raw",), Output(dataset="made", interval="PT1H"))
    for lot in ("20261114PT5M001", "freeform"):
        with pytest.raises(Invalid, match=f"are cut by PT1H, and lot {lot} is none of these"):
            site.register("made", [LOT, lot])
    site.register("made", [LOT])
    site.register("raw", ["freeform"])  # nobody said how its lots are cut


def test_inputs_and_outputs_of_an_arc_have_one_interval(site: Site) -> None:
    declare(site, "clean", ("raw",), Output(dataset="clean", interval="PT1H"))
    declare(site, "join", ("clean", "side"), Output(dataset="joined"))
    with pytest.raises(Conflict, match="ns/clean are cut by PT1H, and those of ns/joined by PT5M"):
        declare(site, "join", ("clean",), Output(dataset="joined", version="2", interval="PT5M"))
    with pytest.raises(Conflict, match="clock:PT24H are cut by PT24H"):
        declare(site, "join", ("clock:PT24H", "clean"), Output(dataset="joined"))
    declare(site, "join", ("clean", "clock:PT1H"), Output(dataset="joined", interval="PT1H"))


def test_a_lot_of_another_interval_is_not_published(site: Site) -> None:
    declare(site, "make", ("raw",), Output(dataset="made", interval="PT1H"))
    site.register("raw", [LOT, "freeform"])
    with pytest.raises(Invalid, match="lot freeform is none of these"):
        site.complete("make", ["freeform"])
    site.complete("make", [LOT])

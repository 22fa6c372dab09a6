"""Backfills of lots with free ids, through HTTP and the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.arc_site import HERE, ArcSite, arc, arc_site
from tests.doors.commands import Terminal, go_home, program

LETTERS = '''
namespace = "shop"

[arcs.sort]
inputs = ["mail"]
outputs = ["sorted"]
workload = ["sh", "-c", """
test "$PENSTOCK_LOT" != bob || test -e repaired || exit 1
date > "$PENSTOCK_OUTPUT/x"
"""]
retry = { tries = 1 }
'''


@pytest.fixture
def site(database_url: str) -> Iterator[ArcSite]:
    """Arc send has sent one letter, and not begun another."""
    with arc_site(database_url) as opened:
        opened.declare(
            "send",
            inputs=[{"dataset": "mail"}],
            outputs=[{"dataset": "letters"}],
            workload={"function": f"{HERE}:make"},
        )
        opened.register("mail", "ada", "bob")
        assert opened.run("send", "ada")
        yield opened


def test_free_lots_are_planned_and_backfilled_over_http(site: ArcSite) -> None:
    start = arc("send", "backfills")

    plan = site.call("POST", *start, json={"dryRun": True})["plan"]
    named = site.call("POST", *start, json={"dryRun": True, "lots": ["ada"]})["plan"]
    begun = site.call("POST", *start, json={"lots": ["bob"], "why": "late"})["backfill"]

    assert [(line["lot"], line["action"]) for line in plan["lines"]] == [("bob", "run")]
    assert (plan["interval"], plan["count"], plan["isCut"]) == (None, 1, False)
    assert (named["totals"], named["actions"]) == ({"good": 1}, {"leave": 1})
    assert (begun["interval"], begun["first"], begun["last"]) == (None, "bob", "bob")
    assert (begun["count"], begun["isCut"], begun["why"]) == (1, False, "late")


def test_wrong_lots_of_a_backfill_are_refused_over_http(site: ArcSite) -> None:
    start = arc("send", "backfills")

    unknown = site.refused("POST", *start, status=404, lots=["bob", "boob"])
    both = site.refused("POST", *start, status=422, lots=["bob"], to="2026-11-15")
    ranged = site.refused("POST", *start, status=422, to="2026-11-15")

    assert "no input or output of arc shop/send has lot boob" in unknown
    assert "leave out one of the two" in both
    assert "--lot" in ranged
    assert site.call("GET", "backfills") == {"backfills": []}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_named_lots_are_backfilled_from_the_command_line(
    site: ArcSite,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_home(monkeypatch, tmp_path, columns=200)
    monkeypatch.setenv("PENSTOCK_URL", site.server.server.url)
    penstock = Terminal(capsys)
    settings = site.server.plane.settings
    engine = {"PENSTOCK_DATABASE": settings.database, "PENSTOCK_OBJECTS": settings.objects}
    (tmp_path / "letters.toml").write_text(LETTERS)
    assert penstock("arcs", "apply", "letters.toml").code == 0
    work = ("arcs", "start", "--once", "--arc", "sort")
    assert program(tmp_path, *work, variables=engine).code == 0
    backfill = ("backfills", "start", "shop/sort")

    dry = penstock(*backfill, "--dry-run")
    named = penstock(*backfill, "--lot", "ada", "--lot", "bob", "--dry-run")
    (tmp_path / "repaired").touch()
    begun = penstock(*backfill, "--lot", "ada", "--lot", "bob", "--why", "repaired")
    worked = program(tmp_path, *work, variables=engine)

    assert (dry.code, "arc shop/sort, lot bob: 1 out of tries" in dry.out) == (3, True)
    assert "arc shop/sort, 2 lots, ada to bob: 1 good, 1 out of tries" in named.out
    assert worked.code == 0, worked.err
    shown = penstock("backfills", "show", begun.text.strip(), "--json").document
    assert (shown["state"], shown["done"], shown["good"]) == ("done", 1, 1)
    assert penstock(*backfill, "--dry-run").code == 0

"""Backfills of lots with free ids, through HTTP and the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.arc_site import HERE, ArcSite, arc_site
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

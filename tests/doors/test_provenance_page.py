"""docs/provenance.md: all its commands run, and do what the page shows."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.arc_site import ArcSite, arc_site
from tests.doors.commands import Terminal

PAGE = Path(__file__).parents[2] / "docs" / "provenance.md"
LOT = "20261115PT1H00"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    monkeypatch.setenv("COLUMNS", "200")
    with arc_site(f"sqlite:///{tmp_path / 'penstock.db'}") as made:
        monkeypatch.setenv("PENSTOCK_URL", made.server.server.url)
        made.register("tick", LOT)
        assert made.run("make", LOT)
        assert made.run("shout", LOT)
        yield made


def commands() -> list[list[str]]:
    """The commands in the page's shell blocks, without `penstock`."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert all(line[0] == "penstock" for line in lines)
    return [line[1:] for line in lines]


def test_commands_of_the_page_work(site: ArcSite, capsys: pytest.CaptureFixture[str]) -> None:
    penstock = Terminal(capsys)
    shown, cut, prov, verified, checked = [penstock(*line) for line in commands()]
    assert [line.split()[1:3] for line in shown.text.splitlines() if "■" in line] == [
        ["shop/loud", LOT],
        ["■", "shop/raw"],
        ["■", "shop/tick"],
    ]
    assert "registered by local" in shown.text
    assert "2 parts" in shown.text
    assert "… and 1 more; --files shows them" in cut.text
    assert "1 input, not followed" in cut.text
    assert len(json.loads(prov.text)["activity"]) == 2
    assert "4 files, 64 B, in 2 versions of 1 lot" in verified.text
    assert "no faults" in verified.text
    assert checked.text.count("✓") > 20
    assert "✗" not in checked.text

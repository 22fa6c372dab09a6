"""`penstock ingest collections`: by flags and by file, against a real server."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.commands import Terminal
from tests.doors.serving import running

FILE = """
[maps]
dataset = "maps"
namespace = "library"
mail = ["maps@example.org"]
places = ["file:///data/in/"]
keep_days = 7

[films]
dataset = "films"
callback = "https://example.org/done"
"""


@pytest.fixture
def penstock(
    penstock: Terminal, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Terminal]:
    with running(database_url) as server:
        monkeypatch.setenv("PENSTOCK_URL", server.server.url)
        yield penstock


def call(penstock: Terminal, *arguments: str) -> dict[str, object]:
    found = penstock("ingest", "collections", *arguments, "--json").document
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("arguments", [["set", "", "--dataset", "x"], ["show", ""], ["delete", ""]])
def test_a_collection_without_a_name(penstock: Terminal, arguments: list[str]) -> None:
    refused = penstock("ingest", "collections", *arguments)
    assert refused.code == 2
    assert refused.complaint == "penstock: the name after 'collections' is empty; give one"


def test_a_collection_is_made_changed_shown_and_forgotten(penstock: Terminal) -> None:
    refused = penstock("ingest", "collections", "set", "maps", "--namespace", "library")
    assert (refused.code, "pass --dataset to create it" in refused.complaint) == (2, True)
    places = ["--place", "file:///data/in/", "--place", "s3://in/"]
    made = call(penstock, "set", "maps", "--dataset", "maps", "-n", "library", *places)
    assert made["places"] == ["file:///data/in/", "s3://in/"]
    assert made["held"] is None
    flags = ["--mail", "a@example.org", "--confirm", "--priority", "5", "--digests", "require"]
    changed = call(penstock, "set", "maps", *flags, "--description", "old maps")
    assert changed["places"] == made["places"]
    assert (changed["mail"], changed["confirm"]) == (["a@example.org"], True)
    assert (changed["priority"], changed["digests"]) == (5, "require")
    cleared = call(penstock, "set", "maps", "--clear", "priority", "--clear", "mail")
    assert (cleared["priority"], cleared["mail"]) == (None, [])
    assert call(penstock, "set", "maps", "--no-confirm")["confirm"] is False
    assert call(penstock, "show", "maps")["description"] == "old maps"
    shown = penstock("ingest", "collections", "show", "maps").text
    assert "library/maps" in shown
    assert "by batch size" in shown
    assert "old maps" in penstock("ingest", "collections", "list").text
    assert "is deleted" in penstock("ingest", "collections", "delete", "maps").text
    gone = penstock("ingest", "collections", "show", "maps")
    assert (gone.code, "there is no collection 'maps'" in gone.complaint) == (1, True)


def test_a_secret_comes_from_a_file_or_stdin_and_is_not_shown(
    penstock: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    where = ["--callback", "https://example.org/done", "--callback-secret-file"]
    made = call(penstock, "set", "maps", "--dataset", "maps", *where, "secret")
    assert made["callbackSecret"] == "********"
    assert "s3cret" not in penstock("ingest", "collections", "show", "maps").text
    monkeypatch.setattr(sys, "stdin", io.StringIO("other\n"))
    again = call(penstock, "set", "maps", *where, "-")
    assert again["callbackSecret"] == "********"
    (tmp_path / "secret").write_text("\n")
    assert penstock("ingest", "collections", "set", "maps", *where, "secret").code == 2
    assert penstock("ingest", "collections", "set", "maps", *where, "none").code == 2


def test_a_file_is_applied_after_showing_what_would_change(
    penstock: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(FILE)
    call(penstock, "set", "maps", "--dataset", "maps", "--owner", "ann", "--keep-days", "30")
    call(penstock, "set", "other", "--dataset", "other")
    told = penstock("ingest", "collections", "apply", "c.toml", "--dry-run").text
    assert "collection maps would be changed:" in told
    assert "collection films would be created:" in told
    assert call(penstock, "show", "maps")["owner"] == "ann"
    done = call(penstock, "apply", "c.toml")
    assert done["dryRun"] is False
    assert [(each["collection"], each["made"]) for each in done["collections"]] == [  # type: ignore[attr-defined]
        ("maps", False),
        ("films", True),
    ]
    maps = call(penstock, "show", "maps")
    assert (maps["namespace"], maps["owner"], maps["keepDays"]) == ("library", "", 7)
    assert call(penstock, "show", "other")["dataset"] == "other"
    again = penstock("ingest", "collections", "apply", "c.toml").text
    assert again.count("is unchanged") == 2


def test_a_secret_that_the_file_leaves_out_stays(penstock: Terminal, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(FILE)
    (tmp_path / "secret").write_text("s3cret")
    call(penstock, "set", "films", "--dataset", "films", "--callback-secret-file", "secret")
    call(penstock, "apply", "c.toml")
    assert call(penstock, "show", "films")["callbackSecret"] == "********"
    assert penstock("ingest", "collections", "apply", "c.toml").text.count("is unchanged") == 2
    (tmp_path / "c.toml").write_text('[films]\ndataset = "films"\n')
    told = penstock("ingest", "collections", "apply", "c.toml").text
    assert "callback_secret" in told
    assert "s3cret" not in told
    assert call(penstock, "show", "films")["callbackSecret"] is None


def test_a_file_with_a_fault_changes_nothing(penstock: Terminal, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(FILE + "keepDays = 3\n")
    refused = penstock("ingest", "collections", "apply", "c.toml")
    assert refused.code == 2
    assert "c.toml, [films]: there is no setting 'keepDays'" in refused.complaint
    assert "did you mean keep_days?" in refused.complaint
    assert call(penstock, "list") == {"collections": []}
    gone = penstock("ingest", "collections", "apply", "none.toml")
    assert (gone.code, "none.toml cannot be read" in gone.complaint) == (2, True)


def test_what_a_lot_is_can_be_said(penstock: Terminal) -> None:
    where = ("ingest", "collections", "set", "maps", "--dataset", "maps")
    assert penstock(*where, "--json").document["lots"] == "batch"
    assert "an interval, PT1H" in penstock(*where, "--lots", "PT1H").text
    assert penstock("ingest", "collections", "show", "maps", "--json").document["lots"] == "PT1H"
    refused = penstock(*where, "--lots", "PT7M")
    assert (refused.code != 0, "PT7M" in refused.complaint) == (True, True)
    with open("c.toml", "w") as file:
        file.write('[maps]\ndataset = "maps"\nlots = "PT7M"\n')
    told = penstock("ingest", "collections", "apply", "c.toml").complaint
    assert "'PT7M' does not define the lots of collection maps; write batch, PT5M" in told
    assert "a lot is" in penstock(*where, "--clear", "lots").text
    assert penstock("ingest", "collections", "show", "maps", "--json").document["lots"] == "batch"

"""Files that workloads leave with names that cannot be keys: reported, and cleaned."""

import os
from pathlib import Path

import pytest

from penstock.arcs.outputs.cleaning import clean_lot
from penstock.arcs.spec import Workload
from penstock.locks.commands.admin import ResubmitLots
from penstock.states import ArcState
from tests.acceptance.arc_site import NS, ONCE, ArcSite

LOT = "20230227PT5M287"
ODD_NAMES = [b"report#7", b"new\nline", b"no text \xff"]


@pytest.fixture
def desk(local_arcs: ArcSite, tmp_path: Path) -> Path:
    """A folder whose files an arc copies unchanged with a command."""
    desk = tmp_path / "desk"
    desk.mkdir()
    command = ("sh", "-c", 'cp -r "$DESK/." "$PENSTOCK_OUTPUT"')
    workload = Workload(command=command, environment={"DESK": str(desk)})
    local_arcs.arc("copy", "raw", "copies", workload, retry=ONCE)
    local_arcs.feed("raw", LOT, {"a.txt": b"hello"})
    return desk


def leave(desk: Path, odd: bytes) -> bytes:
    """Create a file of this name in the folder."""
    path = os.fsencode(desk) + b"/" + odd
    with open(path, "wb") as file:
        file.write(b"odd")
    return path


def all_files(arcs: ArcSite) -> list[bytes]:
    """Return every file below the data of lots."""
    top = os.fsencode(str(arcs.objects.path("data")))
    return [name for _, _, names in os.walk(top) for name in names]


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_unlistable_file_fails_the_lot_and_is_named(
    local_arcs: ArcSite, desk: Path, odd: bytes
) -> None:
    left = leave(desk, odd)
    (desk / "good.txt").write_bytes(b"good")
    with local_arcs.engine():
        local_arcs.until_state("copy", LOT, ArcState.PARTIAL)
        error = str(local_arcs.lot("copy", LOT).error)
        assert "the workload left a file that cannot be listed; " in error
        assert ascii(os.fsdecode(odd))[1:-1] in error
        [attempt] = local_arcs.lot("copy", LOT).failed_attempts
        assert b"good.txt" in local_arcs.objects.get(attempt.keys[0])

        os.remove(left)
        local_arcs.do(ResubmitLots("ann", "renamed", NS, "copy", (LOT,)))
        local_arcs.until_state("copy", LOT, ArcState.COMPLETE)
        local_arcs.until(lambda: all_files(local_arcs) == [b"good.txt"])
    assert local_arcs.content("copy", LOT) == {"good.txt": b"good"}


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_cleaning_removes_unlistable_files(local_arcs: ArcSite, desk: Path, odd: bytes) -> None:
    leave(desk, odd)
    with local_arcs.engine():
        local_arcs.until_state("copy", LOT, ArcState.PARTIAL)
        clean_lot(local_arcs.catalog, local_arcs.objects, "ann", "odd", NS, "copy", LOT)
        assert local_arcs.state("copy", LOT) == ArcState.MISSING
    assert all_files(local_arcs) == []

"""Commands as workloads read and write files, on every store."""

import tempfile
import tomllib
from pathlib import Path

import pytest

from penstock.arcs.files import read_arc
from penstock.arcs.spec import Output, Parts, Workload
from penstock.states import ArcState
from tests.acceptance.arc_site import NS, ONCE, ArcSite

LOT = "20230227PT5M287"
README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which tasks have their files."""
    desk = tmp_path / "tasks"
    desk.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(desk))
    return desk


def command(script: str, *, fetch: bool = True) -> Workload:
    return Workload(command=("sh", "-c", script), fetch=fetch)


def test_readme_arcs_run_on_every_store(arcs: ArcSite, desk: Path) -> None:
    text = README.read_text()
    block = text[text.index('namespace = "shop"\n\n[arcs.') :].partition("\nEOF\n")[0]
    for name, table in tomllib.loads(block)["arcs"].items():
        arc = read_arc({"name": name, **table}, name)
        arcs.arc(name, arc.inputs, "", arc.workload, outputs=arc.outputs, retry=ONCE)
    arcs.feed("orders_clean", LOT, {"a.csv": b"1\n"})
    arcs.feed("ledgers", LOT, {"north.csv": b"id\n1\n", "south.csv": b"id\n2\n3\n"})
    with arcs.engine():
        arcs.until_state("sum_orders", LOT, ArcState.COMPLETE)
        arcs.until_state("count_lines", LOT, ArcState.COMPLETE)
    assert arcs.content("sum_orders", LOT) == {"total.txt": f"total of {LOT}\n".encode()}
    lines = arcs.content("count_lines", LOT)["lines.txt"].decode().split()
    assert lines[::2] == ["2", "3", "5"]
    assert list(desk.iterdir()) == []


def test_each_output_of_a_command_has_a_folder_and_a_variable(arcs: ArcSite, desk: Path) -> None:
    """With subfolders, an empty file, and unusual names."""
    script = """
        mkdir -p "$PENSTOCK_OUTPUT_BIG_ONE/day=1"
        echo "$PENSTOCK_LOT" > "$PENSTOCK_OUTPUT_BIG_ONE/day=1/größe 1.txt"
        : > "$PENSTOCK_OUTPUT_BIG_ONE/nothing"
        echo 1 > "$PENSTOCK_OUTPUT_OTHER/one"
        test "$PENSTOCK_OUTPUT" = "$PENSTOCK_OUTPUT_BIG_ONE"
        echo '[{"output": "third", "empty": true}]' > "$PENSTOCK_MANIFEST"
    """
    outputs = tuple(Output(dataset=name) for name in ("big one", "other", "third"))
    arcs.arc("cut", "raw", "", command(script), outputs=outputs, retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"1\n"})
    with arcs.engine():
        arcs.until_state("cut", LOT, ArcState.COMPLETE)
    assert arcs.content("cut", LOT) == {
        "größe 1.txt": f"{LOT}\n".encode(),
        "nothing": b"",
        "one": b"1\n",
    }
    manifests = {line.dataset: line.state for line in arcs.lot("cut", LOT).manifests}
    assert manifests == {"big one": "complete", "other": "complete", "third": "empty"}
    folder = arcs.objects.list(f"data/namespace={NS}/name=big%20one/version=1/lot={LOT}")
    assert any(entry.key.endswith("/day=1/größe 1.txt") for entry in folder)
    assert list(desk.iterdir()) == []


def test_a_command_reads_the_files_of_its_part(arcs: ArcSite, desk: Path) -> None:
    """One object has another's key as its prefix."""
    script = (
        'sed -n "s/.*\\"path\\": \\"\\(.*\\)\\".*/\\1/p" "$PENSTOCK_TASK" '
        '| grep "day=" | xargs cat > "$PENSTOCK_OUTPUT/part.txt"'
    )
    arcs.arc(
        "join", "raw", "joined", command(script), retry=ONCE, parts=Parts(pattern="day={day}/")
    )
    arcs.feed("raw", LOT, {"day=1/a": b"a\n", "day=1/b.d/a": b"b\n", "day=2/a": b"c\n"})
    with arcs.engine():
        arcs.until_state("join", LOT, ArcState.COMPLETE)
    keys = arcs.objects.list(f"data/namespace={NS}/name=joined/version=1/lot={LOT}")
    parts = {e.key.split("/")[-2]: arcs.objects.get(e.key) for e in keys}
    assert parts == {"part=day%3D1": b"a\nb\n", "part=day%3D2": b"c\n"}
    assert list(desk.iterdir()) == []


def test_data_of_a_failed_command_is_neither_read_nor_kept(arcs: ArcSite, desk: Path) -> None:
    script = 'echo half > "$PENSTOCK_OUTPUT/half.txt"; echo no luck >&2; test -e "$DESK/go"'
    load = Workload(command=("sh", "-c", script), environment={"DESK": str(arcs.folder)})
    arcs.arc("try", "raw", "tried", load, retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"1\n"})
    with arcs.engine():
        arcs.until_state("try", LOT, ArcState.PARTIAL)
    assert list(desk.iterdir()) == []
    assert "no luck" in str(arcs.lot("try", LOT).error)
    assert arcs.lot("try", LOT).manifests == []


def test_inputs_are_not_fetched_without_the_option(arcs: ArcSite, desk: Path) -> None:
    """The command reads them by their URLs, or does not read them."""
    script = (
        'cp "$PENSTOCK_TASK" "$PENSTOCK_OUTPUT/task.json"; '
        'find "$(dirname "$PENSTOCK_TASK")" > "$PENSTOCK_OUTPUT/files"'
    )
    arcs.arc("look", "raw", "seen", command(script, fetch=False), retry=ONCE)
    arcs.feed("raw", LOT, {"north.txt": b"1\n"})
    with arcs.engine():
        arcs.until_state("look", LOT, ArcState.COMPLETE)
    seen = arcs.content("look", LOT)
    assert b"north.txt" in seen["task.json"]
    assert b"north.txt" not in seen["files"]


def test_missing_input_is_named(arcs: ArcSite, desk: Path) -> None:
    arcs.arc(
        "look",
        "raw",
        "seen",
        command('cat "$(sed -n "s/.*\\"path\\": \\"\\(.*txt\\)\\".*/\\1/p" "$PENSTOCK_TASK")"'),
        retry=ONCE,
    )
    arcs.feed("raw", LOT, {"north.txt": b"1\n"})
    [entry] = list(arcs.objects.list("incoming"))
    arcs.objects.delete(entry.key)
    with arcs.engine():
        arcs.until_state("look", LOT, ArcState.PARTIAL)
    assert "north.txt" in str(arcs.lot("look", LOT).error)
    assert list(desk.iterdir()) == []


@pytest.mark.parametrize("odd", ["report#7", "new\nline"])
def test_file_without_a_valid_key_fails_the_lot(arcs: ArcSite, desk: Path, odd: str) -> None:
    load = Workload(
        command=("sh", "-c", 'echo good > "$PENSTOCK_OUTPUT/good"; : > "$PENSTOCK_OUTPUT/$ODD"'),
        environment={"ODD": odd},
    )
    arcs.arc("odd", "raw", "odds", load, retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"1\n"})
    with arcs.engine():
        arcs.until_state("odd", LOT, ArcState.PARTIAL)
    assert "the workload left a file that cannot be listed; " in str(arcs.lot("odd", LOT).error)

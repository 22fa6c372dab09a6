"""One run of a workload: its view of datasets, and its answer."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.arcs.spec import Workload
from penstock.arcs.workload.functions import run_task
from penstock.arcs.workload.task import Context, InputLot, Task, TaskResult
from penstock.errors import Invalid
from penstock.lots.manifests import DatasetRef, Item
from penstock.objects import Objects
from penstock.states import ManifestState

OUTPUTS = (DatasetRef("c8", "o"), DatasetRef("c9", "o"), DatasetRef("c9", "alone"))

Run = Callable[..., TaskResult]


def lot(namespace: str, name: str) -> InputLot:
    return InputLot(namespace, name, "v", ManifestState.COMPLETE, (Item(f"s3://b/{namespace}"),))


def task(workload: Workload, objects: str, **how: Any) -> Task:
    given: dict[str, Any] = {
        "inputs": (lot("c1", "orders"), lot("c2", "orders"), lot("c2", "rates")),
        "outputs": OUTPUTS,
        **how,
    }
    return Task(
        arc="arc", namespace="ns", lot="1", part="", attempt="attempt", run_id="run",
        workload=workload, objects=objects, **given,
    )  # fmt: skip


@pytest.fixture
def context() -> Context:
    return Context(task(Workload(function="m:f"), "memory://"), Objects.open("memory://"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a shell script as the workload of a task that writes to a folder."""

    def run(script: str, **how: Any) -> TaskResult:
        workload = Workload(
            command=("sh", "-c", script), environment={"PYTHON": sys.executable}, fetch=False
        )
        return run_task(task(workload, (tmp_path / "objects").as_uri(), **how))

    return run


def made(result: TaskResult) -> dict[str, tuple[str, int]]:
    assert result.error == ""
    return {
        f"{name.namespace}/{name.name}": (str(note.state), note.uris) for name, note in result.notes
    }


def test_inputs_of_one_name_need_their_namespaces(context: Context) -> None:
    assert list(context.inputs) == ["c1/orders", "c2/orders", "rates"]
    assert [each.namespace for each in context.inputs.values()] == ["c1", "c2", "c2"]
    assert context.inputs["c2/rates"] is context.inputs["rates"]
    assert context.inputs.get("nothing") is None
    with pytest.raises(Invalid, match="'orders' may be c1/orders or c2/orders; write it as"):
        context.inputs["orders"]


def test_outputs_of_one_name_need_their_namespaces(context: Context) -> None:
    assert "namespace=c9/name=o/" in context.write("x", b"x", output="c9/o")
    assert "namespace=c9/name=alone/" in context.write("x", b"x", output="alone")
    with pytest.raises(Invalid, match="'o' may be c8/o or c9/o; write it as NAMESPACE/NAME"):
        context.write("x", b"x", output="o")
    with pytest.raises(Invalid, match="'p' is no output of arc arc; its outputs are c8/o, c9/o, a"):
        context.write("x", b"x", output="p")


def test_command_gets_the_folder_of_each_output(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "task.json"
    assert run(f'cp "$PENSTOCK_TASK" "{copy}"', may_be_empty=OUTPUTS).error == ""
    outputs = json.loads(copy.read_text())["outputs"]
    for output in outputs:
        assert f"namespace={output['namespace']}/name={output['name']}/" in output["location"]
    assert len({output["location"] for output in outputs}) == len(OUTPUTS)


LEAVE = 'echo 1 > "$PENSTOCK_OUTPUT/a"; echo 2 > "$PENSTOCK_OUTPUT/b"; '


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("{}", ("complete", 2)),
        ('{"uris": ["b"]}', ("complete", 1)),
        ('{"empty": true}', ("empty", 0)),
        ('[{"output": "c8/o", "empty": true}, {"output": "c9/o", "uris": []}]', ("empty", 0)),
        ('[{"output": "alone", "empty": true}]', ("complete", 2)),
    ],
)
def test_listed_files_are_the_lot(run: Run, said: str, first: tuple[str, int]) -> None:
    result = run(f"{LEAVE} echo '{said}' > \"$PENSTOCK_MANIFEST\"", may_be_empty=OUTPUTS[1:])
    assert made(result) == {"c8/o": first, "c9/o": ("empty", 0), "c9/alone": ("empty", 0)}


@pytest.mark.parametrize(
    "script",
    [
        "true",
        'echo \'{"uris": []}\' > "$PENSTOCK_MANIFEST"',
        'echo \'{"output": "c9/o", "empty": true}\' > "$PENSTOCK_MANIFEST"',
    ],
)
def test_command_that_writes_nothing_fails(run: Run, script: str) -> None:
    result = run(script)

    assert "the workload wrote nothing for output c8/o" in result.error
    assert 'let a command write {"empty": true} to $PENSTOCK_MANIFEST' in result.error


def test_only_named_outputs_may_lack_data(run: Run) -> None:
    assert "output c9/o" in run(LEAVE, may_be_empty=OUTPUTS[2:]).error
    assert made(run(LEAVE, may_be_empty=OUTPUTS[1:]))["c9/o"] == ("empty", 0)


@pytest.mark.parametrize("said", ['{"uri": ["a"]}', '{"uris": ["a"], "out": "alone"}', "3"])
def test_unknown_fields_of_a_command_manifest_are_refused(run: Run, said: str) -> None:
    result = run(f"{LEAVE} echo '{said}' > \"$PENSTOCK_MANIFEST\"")
    assert "the manifest that the command wrote cannot be read" in result.error


def test_command_ends_with_all_its_processes(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f'echo ok > "$PENSTOCK_OUTPUT/x"; sleep 600 & echo $! > "{note}"'
    assert made(run(script, may_be_empty=OUTPUTS))["c8/o"] == ("complete", 1)
    assert not _runs(int(note.read_text()))


def test_failing_command_ends_with_all_its_processes(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    result = run(f'sleep 600 & echo $! > "{note}"; echo the tape is broken >&2; exit 3')
    assert result.error == "CommandFailed: the tape is broken"
    assert not _runs(int(note.read_text()))


def test_last_line_of_stderr_is_the_reason(run: Run) -> None:
    """More than a pipe holds; and a process outside the group keeps stderr open."""
    script = (
        "\"$PYTHON\" -c \"import sys; sys.stderr.write('x' * 1_000_000 + '\\n')\"; "
        "setsid sleep 3 & echo no more >&2; exit 1"
    )
    assert run(script).error == "CommandFailed: no more"


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE

"""Tasks whose workload is a command: its environment, and its answer."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from penstock.arcs.spec import variable_names
from penstock.arcs.workload.files import TaskFiles, task_folder
from penstock.arcs.workload.shell import give_folder, reclaim_folder, refuse_links, run_command
from penstock.arcs.workload.task import Context, InputLot, Task
from penstock.errors import Invalid
from penstock.lots.manifests import QualityCheck
from penstock.telemetry import tracing


def run_command_task(task: Task, context: Context) -> None:
    """Run a command, which gets its task in the environment, a JSON file and its arguments."""
    account = task.rules.account()
    with task_folder() as folder:
        files = TaskFiles(task, context, folder)
        manifest = folder / "manifest.json"
        described = folder / "task.json"
        variables = {
            **_output_variables(task, files),
            "PENSTOCK_ARC": task.arc,
            "PENSTOCK_NAMESPACE": task.namespace,
            "PENSTOCK_LOT": task.lot,
            "PENSTOCK_PART": task.part,
            "PENSTOCK_ATTEMPT": task.attempt,
            "PENSTOCK_RUN": task.run_id,
            "PENSTOCK_OUTPUT": str(files.outputs[0]),
            "PENSTOCK_OUTPUT_URL": context.location(),
            "PENSTOCK_MANIFEST": str(manifest),
            "PENSTOCK_TASK": str(described),
            **({"TRACEPARENT": trace} if (trace := tracing.header()) else {}),
            **task.workload.environment,
        }
        text = json.dumps(_describe(task, context, files, manifest), indent=1, ensure_ascii=False)
        described.write_text(text, encoding="utf-8", errors="surrogateescape")
        placeholders = {
            "{lot}": task.lot,
            "{part}": task.part,
            "{output}": variables["PENSTOCK_OUTPUT"],
            "{manifest}": str(manifest),
            "{task}": str(described),
        }
        arguments = [_fill_placeholder(text, placeholders) for text in task.workload.command]
        environment = {
            **task.rules.environment(task.workload.pass_environment, os.environ),
            **(account.variables if account is not None else {}),
            **variables,
        }
        if account is not None:
            give_folder(folder, account)
        run_command(arguments, environment, task.workload.timeout_seconds, context.lost, account)
        if account is not None:
            reclaim_folder(folder)
            for path in (manifest, *files.outputs):
                refuse_links(path)
        if manifest.exists():
            _take_manifest(manifest.read_bytes(), context)
        files.take_up()


def _output_variables(task: Task, files: TaskFiles) -> dict[str, str]:
    names = variable_names("PENSTOCK_OUTPUT", [(ref.namespace, ref.name) for ref in task.outputs])
    pairs = zip(names, files.outputs, strict=True)
    return {name: str(folder) for name, folder in pairs if names.count(name) == 1}


def _describe(task: Task, context: Context, files: TaskFiles, manifest: Path) -> dict[str, Any]:
    locations = zip(context.locations(), files.outputs, strict=True)
    return {
        "arc": task.arc,
        "namespace": task.namespace,
        "lot": task.lot,
        "part": task.part,
        "attempt": task.attempt,
        "runId": task.run_id,
        "inputs": [_describe_lot(lot, files, task.workload.fetch) for lot in task.inputs],
        "outputs": [
            {
                "namespace": ref.namespace,
                "name": ref.name,
                "location": location,
                "folder": str(folder),
            }
            for (ref, location), folder in locations
        ],
        "manifest": str(manifest),
    }


def _describe_lot(lot: InputLot, files: TaskFiles, fetch: bool) -> dict[str, Any]:
    described: dict[str, Any] = msgspec.to_builtins(lot)
    for item in described["uris"]:
        path = files.input(item["uri"], fetch=fetch)
        if path is not None:
            item["path"] = str(path)
    return described


class _Listed(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer of a command: URIs, or names under its output's location.

    Without `uris`, the output is the files that the command left. It is empty only with `empty`.
    """

    uris: tuple[str, ...] | None = None
    output: str | None = None
    empty: bool = False
    checks: tuple[QualityCheck, ...] = ()


_decode_listed = msgspec.json.Decoder(_Listed | tuple[_Listed, ...]).decode


def _take_manifest(content: bytes, context: Context) -> None:
    try:
        listed = _decode_listed(content)
    except msgspec.DecodeError as error:
        raise Invalid(
            f"the manifest that the command wrote cannot be read: {error}; "
            'write {"uris": ["name", …]} or {"empty": true}'
        ) from None
    for each in (listed,) if isinstance(listed, _Listed) else listed:
        if each.empty:
            context.empty(each.output)
        for check in each.checks:
            context.check(
                check.name,
                check.success,
                field=check.field,
                detail=check.detail,
                output=each.output or "",
            )
        if each.uris is not None:
            location = context.location(each.output)
            uris = (uri if "://" in uri else location + uri for uri in each.uris)
            context.only(uris, each.output)


def _fill_placeholder(text: str, values: Mapping[str, str]) -> str:
    return values.get(text, text)

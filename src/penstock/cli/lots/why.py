"""`penstock why`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Namespace, RemoteFlags
from penstock.cli.output import write_json, write_line
from penstock.cli.targets import find_entity
from penstock.schema.locks import Why

app = App(
    name="why",
    help_epilogue="""Examples:
  penstock why shop/totals 20261115PT24H
  penstock why totals 17 --json""",
)


@app.default
def why(
    job: Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or job:NAMESPACE:NAME")],
    lot: Annotated[str, Parameter(help="the lot")],
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show what stops a job from working on a lot, down to every root cause."""
    with remote.connect() as client:
        named = find_entity(client, job, "JOB", namespace)
        found = client.why(named.namespace, named.name, lot)
    if as_json:
        write_json(found)
        return
    _write(found, 0)
    commands = [reason.command for root in found.roots for reason in root.reasons if reason.command]
    if commands:
        write_line()
        write_line("what can be done:")
    for command in dict.fromkeys(commands):
        write_line(f"  {command}")


def _write(found: Why, depth: int) -> None:
    indent = "  " * depth
    write_line(f"{indent}{found.sentence}")
    for reason in found.reasons:
        if reason.sentence not in found.sentence:
            write_line(f"{indent}  - {reason.sentence}")
    for cause in found.causes:
        _write(cause, depth + 1)

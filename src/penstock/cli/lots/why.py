"""`penstock why`."""

from cyclopts import App

from penstock.cli.options import OPTIONS, Namespace, Options
from penstock.cli.output import write_line
from penstock.cli.targets import Job, LotId, find_job
from penstock.schema.locks import Why

app = App(
    name="why",
    help_epilogue="""Examples:
  penstock why shop/totals 20261115PT24H
  penstock why totals 17 --json""",
)


@app.default
def why(
    job: Job, lot: LotId, /, *, namespace: Namespace = None, options: Options = OPTIONS
) -> None:
    """Show what stops a job from processing a lot, down to every root cause."""
    with options.connect() as client:
        explanation = client.why(*find_job(client, job, namespace), lot)
    options.write(explanation, _write)


def _write(why: Why) -> None:
    _write_reasons(why, 0)
    commands = [reason.command for root in why.roots for reason in root.reasons if reason.command]
    if commands:
        write_line()
        write_line("what can be done:")
    for command in dict.fromkeys(commands):
        write_line(f"  {command}")


def _write_reasons(why: Why, depth: int) -> None:
    indent = "  " * depth
    write_line(f"{indent}{why.sentence}")
    for reason in why.reasons:
        if reason.sentence not in why.sentence:
            write_line(f"{indent}  - {reason.sentence}")
    for cause in why.causes:
        _write_reasons(cause, depth + 1)

"""`penstock check`."""

from typing import Annotated

from cyclopts import App
from rich.text import Text

from penstock.cli import exit_codes
from penstock.cli.options import OPTIONS, Options, option
from penstock.cli.output import note, out, plain, write_json, write_line
from penstock.errors import Unavailable
from penstock.schema.provenance import Verdict

_EXAMPLES_MAX = 3

app = App(
    name="check",
    help_epilogue="""Examples:
  penstock check
  penstock check --deep --json

The server checks snapshots while it runs, and no writer waits. --deep reads
every byte that a manifest or an inventory lists, and looks for stale keys and
unlisted objects. The exit code is 1 if an invariant is broken.""",
)


@app.default
def check(
    *,
    deep: Annotated[bool, option("read every byte that manifests and inventories list")] = False,
    options: Options = OPTIONS,
) -> int:
    """Check all invariants of the database, the queue and the object store."""
    verdicts: list[Verdict] = []
    marks = _marks(out().encoding)
    with options.connect() as client:
        for verdict in client.check(deep=deep):
            verdicts.append(verdict)
            if not options.json:
                _write(verdict, marks)
    if not verdicts:
        raise Unavailable("the server closed the answer before the first result; check again")
    broken = [verdict for verdict in verdicts if not verdict.holds]
    if options.json:
        write_json({"invariants": verdicts, "holds": not broken})
    else:
        note(f"{len(verdicts)} invariants, {len(broken)} are broken" if broken else "all hold")
    return exit_codes.FAILED if broken else exit_codes.DONE


def _marks(encoding: str) -> tuple[str, str]:
    try:
        "✓✗".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return "ok", "!!"
    return "✓", "✗"


def _write(verdict: Verdict, marks: tuple[str, str]) -> None:
    good, bad = marks
    mark = (good, "green") if verdict.holds else (bad, "bold red")
    count = f" ({verdict.broken:,}{' or more' if verdict.more else ''})" if verdict.broken else ""
    write_line(Text.assemble(mark, f" {verdict.name}{count}: ", (verdict.sentence, "dim")))
    if verdict.error is not None:
        write_line(f"    cannot be checked: {verdict.error}")
    for example in verdict.first[:_EXAMPLES_MAX]:
        write_line(f"    {plain(example)}")

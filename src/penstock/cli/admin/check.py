"""`penstock check`."""

from typing import Annotated

from cyclopts import App
from rich.text import Text

from penstock.cli.options import REMOTE, Json, RemoteFlags, switch
from penstock.cli.output import note, out, plain, write_json, write_line
from penstock.errors import Unavailable
from penstock.schema.provenance import Verdict

SHOWN = 3

app = App(
    name="check",
    help_epilogue="""Examples:
  penstock check
  penstock check --deep --json

It asks a server at work, in snapshots, and no writer waits for it; --deep reads
every byte that a manifest or an inventory names, and looks for stale keys and
for objects that nothing lists. The exit code is 1 if anything does not hold.""",
)


@app.default
def check(
    *,
    deep: Annotated[bool, switch("read every byte that manifests and inventories name")] = False,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Ask of everything that always holds whether it does: database, queue and object store."""
    found: list[Verdict] = []
    marks = _marks(out().encoding)
    with remote.connect() as client:
        for verdict in client.check(deep=deep):
            found.append(verdict)
            if not as_json:
                _write(verdict, marks)
    if not found:
        raise Unavailable("the server broke off before it said anything; check again")
    broken = [verdict for verdict in found if not verdict.holds]
    if as_json:
        write_json({"invariants": found, "holds": not broken})
    else:
        note(f"{len(found)} invariants, {len(broken)} do not hold" if broken else "all hold")
    return 1 if broken else 0


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
        write_line(f"    it cannot be told: {verdict.error}")
    for words in verdict.first[:SHOWN]:
        write_line(f"    {plain(words)}")

"""`penstock audit`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Limit, Offset, RemoteFlags
from penstock.cli.output import Column, write_json, write_json_line, write_table
from penstock.cli.times import show_time

app = App(
    name="audit",
    help_epilogue="""Examples:
  penstock audit --action hold --since 2026-11-15
  penstock audit export --since 2026-11-01 > audit.jsonl""",
)


@app.default
def audit(
    *,
    who: Annotated[str | None, Parameter(help="only what this key did")] = None,
    action: Annotated[str | None, Parameter(help="a part of what was done, as hold")] = None,
    since: Annotated[str | None, Parameter(help="only what was done from this time on")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List what administrators did, newest first."""
    with remote.connect() as client:
        found = client.audit(who=who, action=action, since=since, limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_table(
        (Column("at", whole=True), "who", "from", "did", "to", "detail"),
        ((show_time(e.at), e.who, e.address, e.action, e.target, e.detail) for e in found.entries),
    )


@app.command(
    help_epilogue="""Examples:
  penstock audit export > audit.jsonl
  penstock audit export --since 2026-11-01T00:00:00Z >> audit.jsonl

Each line has the hash of its entry, which covers the entry before it. Keep the
lines elsewhere: a later change of the log does not change them.""",
)
def export(
    *,
    since: Annotated[str | None, Parameter(help="only what was done from this time on")] = None,
    remote: RemoteFlags = REMOTE,
) -> None:
    """Print the audit log as JSON lines, oldest first."""
    after: str | None = None
    with remote.connect() as client:
        while True:
            page = client.export_audit(since=since, after=after)
            for entry in page.entries:
                write_json_line(entry)
            if page.next is None:
                return
            after = page.next

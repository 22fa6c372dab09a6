"""`penstock audit`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, Limit, Offset, Options
from penstock.cli.output import Column, write_json_line

app = App(
    name="audit",
    help_epilogue="""Examples:
  penstock audit --action hold --since 2026-11-15
  penstock audit export --since 2026-11-01 > audit.jsonl""",
)


@app.default
def audit(
    *,
    who: Annotated[str | None, Parameter(help="only actions of this key")] = None,
    action: Annotated[
        str | None, Parameter(help="only actions with this word, such as hold")
    ] = None,
    since: Annotated[str | None, Parameter(help="only actions from this time on")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List the actions of administrators, newest first."""
    with options.connect() as client:
        page = client.audit(who=who, action=action, since=since, limit=limit, offset=offset)
    options.write_table(
        page,
        (Column("at", whole=True), "who", "from", "action", "target", "detail"),
        ((show_time(e.at), e.who, e.address, e.action, e.target, e.detail) for e in page.entries),
    )


@app.command(
    help_epilogue="""Examples:
  penstock audit export > audit.jsonl
  penstock audit export --since 2026-11-01T00:00:00Z >> audit.jsonl

Each line has a hash of its entry and of the entry before it. Keep the lines on
another system, to detect later changes of the log.""",
)
def export(
    *,
    since: Annotated[str | None, Parameter(help="only actions from this time on")] = None,
    options: Options = OPTIONS,
) -> None:
    """Print the audit log as JSON lines, oldest first."""
    after: str | None = None
    with options.connect() as client:
        while True:
            page = client.export_audit(since=since, after=after)
            for entry in page.entries:
                write_json_line(entry)
            if page.next is None:
                return
            after = page.next

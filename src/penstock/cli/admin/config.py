"""`penstock config`."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import SERVER, Json, ServerFlags
from penstock.cli.output import Column, write_json, write_table
from penstock.config import load

app = App(
    name="config",
    help_epilogue="""A flag beats the environment (PENSTOCK_HOST and so on), which beats the file
(penstock.toml), which beats the default. Secrets are masked.""",
)


@app.command(
    help_epilogue="""Examples:
  penstock config show
  PENSTOCK_PORT=8080 penstock config show --json""",
)
def show(
    *,
    flags: ServerFlags = SERVER,
    url: Annotated[str | None, Parameter(help="the server that commands talk to")] = None,
    as_json: Json = False,
) -> None:
    """Show every setting, its value and where the value came from."""
    shown = load({**asdict(flags), "url": url}).shown()
    if as_json:
        write_json([line._asdict() for line in shown])
    else:
        write_table(
            (Column("setting", whole=True), "value", "from"),
            ((line.name, _text(line.value), line.origin) for line in shown),
        )


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

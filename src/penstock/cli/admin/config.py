"""`penstock config`."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import OUTPUT, SERVER, OutputOptions, ServerOptions
from penstock.cli.output import Column
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
    server: ServerOptions = SERVER,
    url: Annotated[str | None, Parameter(help="the server that commands call")] = None,
    options: OutputOptions = OUTPUT,
) -> None:
    """Show every setting with its value and origin."""
    shown = load({**asdict(server), "url": url}).shown()
    options.write_table(
        [line._asdict() for line in shown],
        (Column("setting", whole=True), "value", "from"),
        ((line.name, _text(line.value), line.origin) for line in shown),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

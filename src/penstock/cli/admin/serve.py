"""`penstock serve`."""

from cyclopts import App

from penstock.cli.options import SERVER, ServerFlags

app = App(
    name="serve",
    help_epilogue="""Examples:
  penstock serve
  penstock serve --database postgresql://penstock@db/penstock --port 8080
  PENSTOCK_HOST=0.0.0.0 penstock serve     (needs a key: penstock keys create)

It stops on SIGTERM and Ctrl-C; what is in flight is committed and answered
first.""",
)


@app.default
def serve(*, flags: ServerFlags = SERVER) -> None:
    """Run the server until it is told to stop."""
    from penstock.server import serve as server

    server.serve(flags.load().settings)

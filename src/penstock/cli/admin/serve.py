"""`penstock serve`."""

from cyclopts import App

from penstock.cli.options import SERVER, ServerOptions

app = App(
    name="serve",
    help_epilogue="""Examples:
  penstock serve
  penstock serve --database postgresql://penstock@db/penstock --port 8080
  PENSTOCK_HOST=0.0.0.0 penstock serve     (needs a key: penstock keys create)

On SIGTERM or Ctrl-C it answers open requests and stops.""",
)


@app.default
def serve(*, options: ServerOptions = SERVER) -> None:
    """Run the server until it is stopped."""
    from penstock.server import serve as server

    server.serve(options.load().settings)

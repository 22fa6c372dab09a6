"""`penstock namespaces`."""

from cyclopts import App

from penstock.cli.flags import REMOTE, Json, Limit, Offset, RemoteFlags
from penstock.cli.printing import Column, write_json, write_table
from penstock.cli.times import show_time

app = App(name="namespaces", help_epilogue="Example:\n  penstock namespaces list --json")


@app.command(name="list")
def list_namespaces(
    *,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List namespaces by name."""
    with remote.connect() as client:
        found = client.namespaces(limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_table(
        ("namespace", "owner", Column("updated", whole=True), "description"),
        (
            (
                f"{each.name}{' (deleted)' if each.is_hidden else ''}",
                each.owner_name,
                show_time(each.updated_at),
                each.description,
            )
            for each in found.namespaces
        ),
    )

"""`penstock namespaces`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Limit, Offset, RemoteFlags
from penstock.cli.output import Column, note, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.schema.catalog import Grants

app = App(
    name="namespaces",
    help_epilogue="""Examples:
  penstock namespaces list --json
  penstock namespaces create shop --owner sales
  penstock namespaces grant warehouse --to shop
  penstock namespaces grants warehouse
  penstock namespaces revoke warehouse --from shop

A run with a key for one namespace may name datasets of another as outputs, but
it cannot describe, drop or publish them until that namespace grants it.""",
)

Namespace = Annotated[str, Parameter(help="the namespace whose datasets are written")]


@app.command
def create(
    name: Annotated[str, Parameter(help="the name of the new namespace")],
    /,
    *,
    owner: Annotated[str | None, Parameter(help="who owns it; else the caller")] = None,
    description: Annotated[str | None, Parameter(help="what it is for")] = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Create a namespace that is not there yet."""
    with remote.connect() as client:
        created = client.create_namespace(name, owner=owner, description=description)
    if as_json:
        write_json(created)
    else:
        write_line(f"namespace {created.name} is created; its owner is {created.owner_name}")


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


@app.command
def grant(
    namespace: Namespace,
    /,
    *,
    to: Annotated[str, Parameter(help="the namespace whose runs may write them")],
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Let the runs of another namespace write the datasets of a namespace."""
    with remote.connect() as client:
        grants = client.grant_namespace(namespace, to)
    if as_json:
        write_json(grants)
    else:
        write_line(f"runs of {to} may write the datasets of {namespace}")


@app.command
def revoke(
    namespace: Namespace,
    /,
    *,
    grantee: Annotated[
        str, Parameter(name="--from", help="the namespace whose runs may no longer write them")
    ],
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Take a grant back; versions that were made under it stay."""
    with remote.connect() as client:
        grants = client.revoke_grant(namespace, grantee)
    if as_json:
        write_json(grants)
    else:
        write_line(f"runs of {grantee} may no longer write the datasets of {namespace}")


@app.command(name="grants")
def list_grants(
    namespace: Namespace,
    /,
    *,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List the namespaces whose runs may write the datasets of a namespace."""
    with remote.connect() as client:
        grants = client.grants(namespace)
    if as_json:
        write_json(grants)
        return
    _write_grants(grants)
    if not grants.grants:
        note(f"no grants: only keys for {namespace} and for all namespaces write its datasets")


def _write_grants(grants: Grants) -> None:
    write_table(
        ("granted to", "by", Column("at", whole=True)),
        ((each.grantee, each.granted_by, show_time(each.granted_at)) for each in grants.grants),
    )

"""`penstock namespaces`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, Limit, Offset, Options
from penstock.cli.output import Column, note

app = App(
    name="namespaces",
    help_epilogue="""Examples:
  penstock namespaces list --json
  penstock namespaces create shop --owner sales
  penstock namespaces grant warehouse --to shop
  penstock namespaces grants warehouse
  penstock namespaces revoke warehouse --from shop

A run with a key for one namespace may name datasets of another as outputs. To
describe, drop or publish them it needs a grant of that namespace.""",
)

DatasetNamespace = Annotated[str, Parameter(help="the namespace of the datasets")]


@app.command
def create(
    name: Annotated[str, Parameter(help="the name of the new namespace")],
    /,
    *,
    owner: Annotated[str | None, Parameter(help="its owner; default: the caller")] = None,
    description: Annotated[str | None, Parameter(help="what it contains")] = None,
    options: Options = OPTIONS,
) -> None:
    """Create a namespace."""
    with options.connect() as client:
        created = client.create_namespace(name, owner=owner, description=description)
    options.write_line(
        created, f"namespace {created.name} is created; its owner is {created.owner_name}"
    )


@app.command(name="list")
def list_namespaces(*, limit: Limit = 100, offset: Offset = 0, options: Options = OPTIONS) -> None:
    """List namespaces by name."""
    with options.connect() as client:
        page = client.namespaces(limit=limit, offset=offset)
    options.write_table(
        page,
        ("namespace", "owner", Column("updated", whole=True), "description"),
        (
            (
                f"{each.name}{' (deleted)' if each.is_hidden else ''}",
                each.owner_name,
                show_time(each.updated_at),
                each.description,
            )
            for each in page.namespaces
        ),
    )


@app.command
def grant(
    namespace: DatasetNamespace,
    /,
    *,
    to: Annotated[str, Parameter(help="the namespace whose runs may write them")],
    options: Options = OPTIONS,
) -> None:
    """Let the runs of another namespace write the datasets of a namespace."""
    with options.connect() as client:
        grants = client.grant_namespace(namespace, to)
    options.write_line(grants, f"runs of {to} may write the datasets of {namespace}")


@app.command
def revoke(
    namespace: DatasetNamespace,
    /,
    *,
    grantee: Annotated[
        str, Parameter(name="--from", help="the namespace whose runs may no longer write them")
    ],
    options: Options = OPTIONS,
) -> None:
    """Revoke a grant; versions that were made under it stay."""
    with options.connect() as client:
        grants = client.revoke_grant(namespace, grantee)
    options.write_line(grants, f"runs of {grantee} may no longer write the datasets of {namespace}")


@app.command(name="grants")
def list_grants(namespace: DatasetNamespace, /, *, options: Options = OPTIONS) -> None:
    """List the namespaces whose runs may write the datasets of a namespace."""
    with options.connect() as client:
        page = client.grants(namespace)
    options.write_table(
        page,
        ("granted to", "by", Column("at", whole=True)),
        ((each.grantee, each.granted_by, show_time(each.granted_at)) for each in page.grants),
    )
    if not page.grants and not options.json:
        note(f"no grants: only keys for {namespace} and for all namespaces write its datasets")

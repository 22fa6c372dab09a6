"""`penstock datasets`."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Limit, Namespace, Offset, RemoteFlags, switch
from penstock.cli.output import (
    Cell,
    Column,
    write_fields,
    write_json,
    write_line,
    write_rest,
    write_table,
)
from penstock.cli.targets import deleted_dataset, exact_dataset, find_dataset
from penstock.cli.times import show_time
from penstock.client import Client
from penstock.client.names import read_name
from penstock.schema.catalog import Dataset, DatasetField, Datasets, DatasetVersion, EntityId

app = App(
    name="datasets",
    help_epilogue="""Examples:
  penstock datasets list --namespace warehouse
  penstock datasets create warehouse/raw.orders --description "as the shop sends them"
  penstock datasets show warehouse/marts.daily_revenue
  penstock datasets versions daily_revenue --json
  penstock datasets tag warehouse/staging.customers pii --field email""",
)

Name = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or dataset:NAMESPACE:NAME")]
MAKER_WIDTH_MAX = 32
_PAGE = 1000


@app.command
def create(
    name: Annotated[str, Parameter(help="NAMESPACE/NAME of the new dataset")],
    /,
    *,
    namespace: Namespace = None,
    description: Annotated[str | None, Parameter(help="what it holds")] = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Create a dataset that is not there yet, with its namespace."""
    at = EntityId(namespace, name) if namespace is not None else read_name(name)
    with remote.connect() as client:
        created = client.create_dataset(at.namespace, at.name, description=description)
    if as_json:
        write_json(created)
        return
    if created.is_namespace_new:
        write_line(f"namespace {created.namespace} is created")
    write_line(f"dataset {created.namespace}/{created.name} is created")


@app.command(name="list")
def list_datasets(
    *,
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="only those of this namespace")
    ] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List datasets by name."""
    with remote.connect() as client:
        if namespace is None:
            found = _of_all_namespaces(client, limit, offset)
        else:
            found = client.datasets(namespace, limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_table(
        ("dataset", "namespace", "version", Column("updated", whole=True), "tags"),
        (
            (d.name, d.namespace, _number(d), show_time(d.updated_at), ", ".join(d.tags))
            for d in found.datasets
        ),
    )
    write_rest(len(found.datasets), found.total_count, offset)


def _namespaces(client: Client) -> Iterator[str]:
    offset = 0
    while page := client.namespaces(limit=_PAGE, offset=offset).namespaces:
        yield from (each.name for each in page)
        offset += len(page)


def _of_all_namespaces(client: Client, limit: int, offset: int) -> Datasets:
    """The lists of all namespaces, one after the other, as if they were one."""
    shown: list[Dataset] = []
    total = 0
    for namespace in _namespaces(client):
        skip = max(0, offset - total)
        wanted = limit - len(shown)
        page = client.datasets(namespace, limit=wanted, offset=skip)
        shown += page.datasets
        total += page.total_count
    return Datasets(tuple(shown), total)


@app.command
def show(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show a dataset with its fields."""
    with remote.connect() as client:
        found = client.dataset(*find_dataset(client, name, namespace))
    if as_json:
        write_json(found)
        return
    write_fields(_about(found))
    if found.fields:
        write_line()
        _write_schema(found.fields)


def _about(dataset: Dataset) -> list[tuple[str, Cell]]:
    aliases = dataset.aliases or ()
    return [
        ("dataset", dataset.name),
        ("namespace", dataset.namespace),
        ("source", dataset.source_name),
        ("description", dataset.description),
        ("tags", ", ".join(dataset.tags)),
        ("version", _number(dataset)),
        ("version id", dataset.current_version),
        ("modified", show_time(dataset.last_modified_at)),
        ("lifecycle", dataset.last_lifecycle_state),
        ("also known as", ", ".join(f"{a.namespace}/{a.name}" for a in aliases)),
        ("node", f"dataset:{dataset.namespace}:{dataset.name}"),
        ("deleted", "yes" if dataset.deleted else None),
    ]


def _write_schema(fields: Sequence[DatasetField]) -> None:
    write_table(
        ("field", "type", "tags", "description"),
        ((f.name, f.type, ", ".join(f.tags), f.description) for f in fields),
    )


@app.command
def versions(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List the versions of a dataset, newest first, and how its fields changed."""
    with remote.connect() as client:
        named = find_dataset(client, name, namespace)
        found = client.dataset_versions(*named, limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_versions(found.versions)
    write_rest(len(found.versions), found.total_count, offset)


def write_versions(versions: Sequence[DatasetVersion]) -> None:
    """Versions, each with what its fields have that those of the one before had not."""
    older = [*versions[1:], None]
    makers = [_maker(version) for version in versions]
    short = all(len(maker) <= MAKER_WIDTH_MAX for maker in makers)
    write_table(
        (
            Column("version", whole=True),
            Column("created", whole=True),
            Column("made by", whole=True) if short else "made by",
            "fields",
        ),
        (
            (
                _version_label(version),
                show_time(version.created_at)[:16],
                maker,
                changes(version, before),
            )
            for version, before, maker in zip(versions, older, makers, strict=True)
        ),
    )


def changes(version: DatasetVersion, before: DatasetVersion | None) -> str:
    """How the fields of a version differ from those of the one before it."""
    now = {field.name: field.type for field in version.fields}
    if before is None:
        return ", ".join(now)
    was = {field.name: field.type for field in before.fields}
    parts = [f"+{name}" for name in now if name not in was]
    parts += [f"-{name}" for name in was if name not in now]
    parts += [
        f"{name}: {was[name]} to {now[name]}"
        for name in now
        if name in was and was[name] != now[name]
    ]
    return ", ".join(parts) or "same"


def _maker(version: DatasetVersion) -> str:
    run = version.created_by_run
    if run is None:
        return "declared"
    return run.job.name if run.state == "COMPLETED" else f"{run.job.name} {run.state}"


@app.command
def delete(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Hide a dataset, until it is restored or written again."""
    with remote.connect() as client:
        found = client.delete_dataset(*exact_dataset(client, name, namespace))
    _tell(found, "is deleted; `penstock datasets restore` brings it back", as_json)


@app.command
def restore(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Bring back a deleted dataset; name it by NAMESPACE/NAME."""
    with remote.connect() as client:
        found = client.restore_dataset(*deleted_dataset(client, name, namespace))
    _tell(found, "is back", as_json)


@app.command
def tag(
    name: Name,
    tag_name: Annotated[str, Parameter(help="the tag")],
    /,
    *,
    field: Annotated[str | None, Parameter(help="the field to tag, not the dataset")] = None,
    remove: Annotated[bool, switch("take the tag off")] = False,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Put a tag on a dataset or one of its fields."""
    with remote.connect() as client:
        change = client.untag_dataset if remove else client.tag_dataset
        found = change(*exact_dataset(client, name, namespace), tag_name, field)
    done = f"{'is no longer' if remove else 'is'} tagged {tag_name}"
    _tell(found, f"{done} on field {field}" if field else done, as_json)


def _number(dataset: Dataset) -> str:
    number = dataset.current_version_number
    return "" if number is None else f"V{number}"


def _tell(dataset: Dataset, what: str, as_json: bool) -> None:
    if as_json:
        write_json(dataset)
    else:
        write_line(f"dataset {dataset.namespace}/{dataset.name} {what}")


def _version_label(version: DatasetVersion) -> str:
    if version.is_unconfirmed:
        return f"V{version.number} unconfirmed"
    return f"V{version.number}{' current' if version.is_current else ''}"

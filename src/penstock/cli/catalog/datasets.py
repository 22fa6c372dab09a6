"""`penstock datasets`."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.formats import show_time
from penstock.cli.lots.holds import write_held, write_released
from penstock.cli.options import (
    OPTIONS,
    Limit,
    Namespace,
    NamespaceFilter,
    Offset,
    Options,
    Reason,
    option,
)
from penstock.cli.output import Column, write_fields, write_line, write_rest, write_table
from penstock.cli.targets import Dataset as Name
from penstock.cli.targets import deleted_dataset, exact_dataset, find_dataset
from penstock.client import Client
from penstock.client.names import read_name
from penstock.schema.catalog import Dataset, Datasets, DatasetVersion, DatasetVersions, EntityId

app = App(
    name="datasets",
    help_epilogue="""Examples:
  penstock datasets list --namespace warehouse
  penstock datasets create warehouse/raw.orders --description "orders of the shop"
  penstock datasets show warehouse/marts.daily_revenue
  penstock datasets versions daily_revenue --json
  penstock datasets tag warehouse/staging.customers pii --field email
  penstock datasets hold shop/raw --why "the disk is being replaced"
  penstock datasets release shop/raw --why tested""",
)

_MAKER_WIDTH_MAX = 32
_PAGE = 1000


@app.command
def create(
    name: Annotated[str, Parameter(help="NAMESPACE/NAME of the new dataset")],
    /,
    *,
    namespace: Namespace = None,
    description: Annotated[str | None, Parameter(help="what it contains")] = None,
    options: Options = OPTIONS,
) -> None:
    """Create a dataset, and its namespace if that is new."""
    at = EntityId(namespace, name) if namespace is not None else read_name(name)
    with options.connect() as client:
        created = client.create_dataset(at.namespace, at.name, description=description)
    if created.is_namespace_new and not options.json:
        write_line(f"namespace {created.namespace} is created")
    options.write_line(created, f"dataset {created.namespace}/{created.name} is created")


@app.command(name="list")
def list_datasets(
    *,
    namespace: NamespaceFilter = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List datasets by name."""
    with options.connect() as client:
        if namespace is None:
            page = _list_all(client, limit, offset)
        else:
            page = client.datasets(namespace, limit=limit, offset=offset)
    options.write_table(
        page,
        ("dataset", "namespace", "version", Column("updated", whole=True), "tags"),
        (
            (d.name, d.namespace, _number(d), show_time(d.updated_at), ", ".join(d.tags))
            for d in page.datasets
        ),
        total_count=page.total_count,
        offset=offset,
    )


def _list_all(client: Client, limit: int, offset: int) -> Datasets:
    """Concatenate the lists of all namespaces."""
    datasets: list[Dataset] = []
    total = 0
    for namespace in _namespaces(client):
        skip = max(0, offset - total)
        page = client.datasets(namespace, limit=limit - len(datasets), offset=skip)
        datasets += page.datasets
        total += page.total_count
    return Datasets(tuple(datasets), total)


def _namespaces(client: Client) -> Iterator[str]:
    offset = 0
    while page := client.namespaces(limit=_PAGE, offset=offset).namespaces:
        yield from (each.name for each in page)
        offset += len(page)


@app.command
def show(name: Name, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Show a dataset with its fields."""
    with options.connect() as client:
        dataset = client.dataset(*find_dataset(client, name, namespace))
    options.write(dataset, _write_dataset)


def _write_dataset(dataset: Dataset) -> None:
    aliases = dataset.aliases or ()
    write_fields(
        [
            ("dataset", dataset.name),
            ("namespace", dataset.namespace),
            ("source", dataset.source_name),
            ("description", dataset.description),
            ("tags", ", ".join(dataset.tags)),
            ("version", _number(dataset)),
            ("version id", dataset.current_version),
            ("modified", show_time(dataset.last_modified_at)),
            ("lifecycle", dataset.last_lifecycle_state),
            ("aliases", ", ".join(f"{each.namespace}/{each.name}" for each in aliases)),
            ("node", f"dataset:{dataset.namespace}:{dataset.name}"),
            ("deleted", "yes" if dataset.deleted else None),
        ]
    )
    if dataset.fields:
        write_line()
        write_table(
            ("field", "type", "tags", "description"),
            ((f.name, f.type, ", ".join(f.tags), f.description) for f in dataset.fields),
        )


@app.command
def versions(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List the versions of a dataset with the changes of its fields, newest first."""

    def write_text(page: DatasetVersions) -> None:
        write_versions(page.versions)
        write_rest(len(page.versions), page.total_count, offset)

    with options.connect() as client:
        at = find_dataset(client, name, namespace)
        page = client.dataset_versions(*at, limit=limit, offset=offset)
    options.write(page, write_text)


def write_versions(versions: Sequence[DatasetVersion]) -> None:
    """Write versions, each with the fields that differ from the version before."""
    older = [*versions[1:], None]
    makers = [_maker(version) for version in versions]
    is_short = all(len(maker) <= _MAKER_WIDTH_MAX for maker in makers)
    write_table(
        (
            Column("version", whole=True),
            Column("created", whole=True),
            Column("made by", whole=is_short),
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
    """Describe how the fields of a version differ from those of the version before."""
    new = {field.name: field.type for field in version.fields}
    if before is None:
        return ", ".join(new)
    old = {field.name: field.type for field in before.fields}
    parts = [f"+{name}" for name in new if name not in old]
    parts += [f"-{name}" for name in old if name not in new]
    parts += [
        f"{name}: {old[name]} to {new[name]}"
        for name in new
        if name in old and old[name] != new[name]
    ]
    return ", ".join(parts) or "same"


def _maker(version: DatasetVersion) -> str:
    run = version.created_by_run
    if run is None:
        return "declared"
    return run.job.name if run.state == "COMPLETED" else f"{run.job.name} {run.state}"


def _version_label(version: DatasetVersion) -> str:
    if version.is_unconfirmed:
        return f"V{version.number} unconfirmed"
    return f"V{version.number}{' current' if version.is_current else ''}"


@app.command
def hold(
    name: Name,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Hold a dataset until it is released: jobs that read or write its lots stop."""
    with options.connect() as client:
        held = client.hold_dataset(*exact_dataset(client, name, namespace), why)
    write_held(options, held, why)


@app.command
def release(
    name: Name,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """End the hold of a dataset, and list the holds that still stop its jobs."""
    with options.connect() as client:
        released = client.release_dataset(*exact_dataset(client, name, namespace), why)
    write_released(options, released)


@app.command
def delete(name: Name, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Hide a dataset until it is restored or written again."""
    with options.connect() as client:
        dataset = client.delete_dataset(*exact_dataset(client, name, namespace))
    _write_change(dataset, "is deleted; `penstock datasets restore` restores it", options)


@app.command
def restore(name: Name, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Restore a deleted dataset, named NAMESPACE/NAME."""
    with options.connect() as client:
        dataset = client.restore_dataset(*deleted_dataset(client, name, namespace))
    _write_change(dataset, "is restored", options)


@app.command
def tag(
    name: Name,
    tag_name: Annotated[str, Parameter(help="the tag")],
    /,
    *,
    field: Annotated[str | None, Parameter(help="the field to tag, not the dataset")] = None,
    remove: Annotated[bool, option("remove the tag")] = False,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Tag a dataset or one of its fields, or remove a tag."""
    with options.connect() as client:
        change = client.untag_dataset if remove else client.tag_dataset
        dataset = change(*exact_dataset(client, name, namespace), tag_name, field)
    done = f"{'is no longer' if remove else 'is'} tagged {tag_name}"
    _write_change(dataset, f"{done} on field {field}" if field else done, options)


def _number(dataset: Dataset) -> str:
    number = dataset.current_version_number
    return "" if number is None else f"V{number}"


def _write_change(dataset: Dataset, done: str, options: Options) -> None:
    options.write_line(dataset, f"dataset {dataset.namespace}/{dataset.name} {done}")

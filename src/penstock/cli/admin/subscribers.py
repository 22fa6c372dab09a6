"""`penstock subscribers`: webhooks and backends that receive events of lots."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from msgspec import UNSET, UnsetType

from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, NamespaceFilter, Options, option
from penstock.cli.output import Cell, Column, write_fields
from penstock.errors import Invalid
from penstock.schema.subscribers import Subscriber

app = App(
    name="subscribers",
    help_epilogue="""Examples:
  penstock subscribers list
  penstock subscribers set pager --kind webhook --url https://x.org/lots
  penstock subscribers set marquez --kind openlineage --url http://marquez:5000
  penstock subscribers delete pager

A webhook receives a signed POST for each event of a lot. A backend of kind
openlineage receives the runs of Penstock as OpenLineage events. Each receives
every event in order, at least once. Refused events are retried with growing
delays.""",
)

Name = Annotated[str, Parameter(help="the subscriber")]
_COLUMNS = (
    Column("name", whole=True),
    "kind",
    "url",
    "of",
    Column("behind", numbers=True),
    Column("failures", numbers=True),
    "last error",
)


@app.command(name="list")
def list_subscribers(*, options: Options = OPTIONS) -> None:
    """List subscribers with their lag and last error."""
    with options.connect() as client:
        page = client.subscribers()
    options.write_table(page, _COLUMNS, map(_row, page.subscribers))


@app.command
def show(name: Name, /, *, options: Options = OPTIONS) -> None:
    """Show one subscriber."""
    with options.connect() as client:
        subscriber = client.subscriber(name)
    options.write(subscriber, _write)


@app.command(
    name="set",
    help_epilogue="""Examples:
  penstock subscribers set pager --kind webhook --url https://x.org/lots
  penstock subscribers set pager --kind webhook --url https://x.org/lots \\
    --secret-file pager.secret --namespace shop --dataset orders
  penstock subscribers set pager --kind webhook --url https://x.org/lots --after 0

The secret comes from a file or, with -, from stdin, so that the list of
processes does not show it. Without the option the secret stays as it is.""",
)
def set_subscriber(
    name: Name,
    /,
    *,
    kind: Annotated[Literal["webhook", "openlineage"], Parameter(help="the kind of events")],
    url: Annotated[str, Parameter(help="its address")],
    secret_file: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True, help="a file with the signing secret or the backend's key"
        ),
    ] = None,
    no_secret: Annotated[bool, option("remove its secret")] = False,
    namespace: NamespaceFilter = None,
    dataset: Annotated[str | None, Parameter(help="only datasets with this name")] = None,
    after: Annotated[
        int | None, Parameter(help="continue after this event; 0 begins at the first")
    ] = None,
    options: Options = OPTIONS,
) -> None:
    """Create or change a subscriber, and retry it at once."""
    secret = _secret(secret_file, no_secret)
    with options.connect() as client:
        subscriber = client.set_subscriber(
            name, kind, url, secret=secret, namespace=namespace, dataset=dataset, after=after
        )
    options.write_line(
        subscriber, f"subscriber {name} receives the events after {subscriber.cursor}"
    )


@app.command
def delete(name: Name, /, *, options: Options = OPTIONS) -> None:
    """Delete a subscriber."""
    with options.connect() as client:
        subscriber = client.delete_subscriber(name)
    options.write_line(
        subscriber,
        f"subscriber {name} is deleted; it received all events up to {subscriber.cursor}",
    )


def _secret(file: str | None, remove: bool) -> str | UnsetType | None:
    if file is None:
        return None if remove else UNSET
    if remove:
        raise Invalid("--secret-file sets a secret and --no-secret removes it; omit one of them")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"the secret cannot be read from {file}: {error}") from None
    return text.strip()


def _row(subscriber: Subscriber) -> tuple[Cell, ...]:
    return (
        subscriber.name,
        subscriber.kind,
        subscriber.url,
        _of(subscriber),
        subscriber.lag,
        subscriber.failures,
        subscriber.last_error if subscriber.failures else None,
    )


def _of(subscriber: Subscriber) -> str:
    if subscriber.dataset is None:
        return subscriber.namespace or "all"
    return f"{subscriber.namespace or '*'}/{subscriber.dataset}"


def _write(subscriber: Subscriber) -> None:
    write_fields(
        (
            ("name", subscriber.name),
            ("kind", subscriber.kind),
            ("url", subscriber.url),
            ("signed", "yes" if subscriber.has_secret else "no"),
            ("of", _of(subscriber)),
            ("received", f"events up to {subscriber.cursor}"),
            ("behind", f"{subscriber.lag:,} events at most" if subscriber.lag else "nothing"),
            ("waiting since", show_time(subscriber.waiting_since)),
            ("last delivery", show_time(subscriber.last_delivered_at)),
            ("failures", f"{subscriber.failures} in a row" if subscriber.failures else None),
            ("last error", subscriber.last_error),
            ("failed", show_time(subscriber.last_failed_at)),
            ("next try", show_time(subscriber.next_try_at)),
            ("created", show_time(subscriber.created_at)),
            ("changed", show_time(subscriber.updated_at)),
        )
    )

"""`penstock subscribers`: who is told of what happens to lots."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from msgspec import UNSET, UnsetType

from penstock.cli.options import REMOTE, Json, RemoteFlags, switch
from penstock.cli.output import Cell, Column, write_fields, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.errors import Invalid
from penstock.schema.subscribers import Subscriber

app = App(
    name="subscribers",
    help_epilogue="""Examples:
  penstock subscribers list
  penstock subscribers set pager --kind webhook --url https://x.org/lots
  penstock subscribers set marquez --kind openlineage --url http://marquez:5000
  penstock subscribers delete pager

A webhook gets a signed POST for each event of a lot; a backend of kind
openlineage gets our own runs as OpenLineage events. Each gets every event in
its order, at least once: what is refused is tried again, ever more rarely.""",
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
def list_subscribers(*, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """List subscribers, how far behind each is, and what went wrong last."""
    with remote.connect() as client:
        found = client.subscribers()
    if as_json:
        write_json(found)
        return
    write_table(_COLUMNS, map(_row, found.subscribers))


@app.command
def show(name: Name, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """Show one subscriber."""
    with remote.connect() as client:
        found = client.subscriber(name)
    if as_json:
        write_json(found)
        return
    _write(found)


@app.command(
    name="set",
    help_epilogue="""Examples:
  penstock subscribers set pager --kind webhook --url https://x.org/lots
  penstock subscribers set pager --kind webhook --url https://x.org/lots \\
    --secret-file pager.secret --namespace shop --dataset orders
  penstock subscribers set pager --kind webhook --url https://x.org/lots --after 0

A secret is read from a file or, with -, from stdin: nobody sees it in the
list of processes. One that is not given stays as it is.""",
)
def set_subscriber(
    name: Name,
    /,
    *,
    kind: Annotated[Literal["webhook", "openlineage"], Parameter(help="what it is told, and how")],
    url: Annotated[str, Parameter(help="where it is told")],
    secret_file: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="what signs calls, or the backend's key"),
    ] = None,
    no_secret: Annotated[bool, switch("take its secret away")] = False,
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="only of this namespace")
    ] = None,
    dataset: Annotated[str | None, Parameter(help="only of datasets with this name")] = None,
    after: Annotated[
        int | None, Parameter(help="go on after this event; 0 is before the first")
    ] = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Make a subscriber, or change it; it is tried again at once."""
    secret = _secret(secret_file, no_secret)
    with remote.connect() as client:
        made = client.set_subscriber(
            name, kind, url, secret=secret, namespace=namespace, dataset=dataset, after=after
        )
    if as_json:
        write_json(made)
    else:
        write_line(f"subscriber {name} is told of what comes after event {made.cursor}")


@app.command
def delete(name: Name, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """Tell a subscriber nothing more."""
    with remote.connect() as client:
        gone = client.delete_subscriber(name)
    if as_json:
        write_json(gone)
    else:
        write_line(f"subscriber {name} is deleted; it had all events up to {gone.cursor}")


def _secret(file: str | None, taken_away: bool) -> str | UnsetType | None:
    if file is None:
        return None if taken_away else UNSET
    if taken_away:
        raise Invalid("--secret-file gives a secret and --no-secret takes it away; say one")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"the secret cannot be read from {file}: {error}") from None
    return text.strip()


def _row(found: Subscriber) -> tuple[Cell, ...]:
    return (
        found.name,
        found.kind,
        found.url,
        _of(found),
        found.lag,
        found.failures,
        found.last_error if found.failures else None,
    )


def _of(found: Subscriber) -> str:
    if found.dataset is None:
        return found.namespace or "all"
    return f"{found.namespace or '*'}/{found.dataset}"


def _write(found: Subscriber) -> None:
    write_fields(
        (
            ("name", found.name),
            ("kind", found.kind),
            ("url", found.url),
            ("signed", "yes" if found.has_secret else "no"),
            ("of", _of(found)),
            ("has had", f"events up to {found.cursor}"),
            ("behind", f"{found.lag:,} events at most" if found.lag else "nothing"),
            ("waiting since", show_time(found.waiting_since)),
            ("last delivery", show_time(found.last_delivered_at)),
            ("failures", f"{found.failures} in a row" if found.failures else None),
            ("last error", found.last_error),
            ("failed", show_time(found.last_failed_at)),
            ("tried again", show_time(found.next_try_at)),
            ("since", show_time(found.created_at)),
            ("changed", show_time(found.updated_at)),
        )
    )

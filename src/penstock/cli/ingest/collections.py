"""`penstock ingest collections`."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from penstock.cli.ingest.watch import show_bytes
from penstock.cli.options import REMOTE, Json, RemoteFlags
from penstock.cli.output import note, write_fields, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.client import ApiError, Client
from penstock.errors import Invalid
from penstock.schema.ingest import ShownCollection

app = App(
    name="collections",
    help_epilogue="""Examples:
  penstock ingest collections set maps --dataset maps --namespace library
  penstock ingest collections set maps --place file:///data/in/ --mail me@x.org
  penstock ingest collections apply collections.toml --dry-run
  penstock ingest collections show maps""",
)
app.command(
    "penstock.cli.ingest.apply:app", name="apply", help="Make collections as a file describes them."
)

Name = Annotated[str, Parameter(help="the collection")]
Profile = dict[str, Any]
SECRET = "callback_secret"
FIELDS = tuple(
    name for name in ShownCollection.__struct_fields__ if name not in ("name", "dataset", "held")
)
_NOT_FOUND = 404


def _many(text: str) -> Parameter:
    return Parameter(negative=(), show_default=False, help=text)


@app.command(name="list")
def list_collections(*, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """List the collections that batches can be submitted to."""
    with remote.connect() as client:
        found = client.collections()
    if as_json:
        write_json(found)
        return
    if not found.collections:
        write_line("there are no collections; make one with:")
        write_line("penstock ingest collections set NAME --dataset DATASET")
        return
    write_table(
        ("collection", "dataset", "description", "held"),
        (
            (each.name, f"{each.namespace}/{each.dataset}", each.description, _held(each))
            for each in found.collections
        ),
    )


@app.command
def show(name: Name, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """Show the profile of a collection."""
    with remote.connect() as client:
        found = client.collection(name)
    if as_json:
        write_json(found)
    else:
        _write(found)


def _write(found: ShownCollection) -> None:
    write_fields(
        [
            ("collection", found.name),
            ("dataset", f"{found.namespace}/{found.dataset}"),
            ("description", found.description),
            ("held", _held(found)),
            ("owner of local ids", found.owner or found.name),
            ("priority", "by batch size" if found.priority is None else str(found.priority)),
            ("digests", found.digests),
            ("an update checks", f"the {found.inherited} of the files that it takes over"),
            ("files at most", found.files_max),
            ("bytes at most", show_bytes(found.bytes_max)),
            ("rows at most", found.rows_max),
            ("callback", found.callback),
            ("callback secret", found.callback_secret),
            ("mail", ", ".join(found.mail)),
            ("confirmation", "when a batch is queued" if found.confirm else None),
            ("storage", found.storage or "the server's own"),
            ("ARKs", f"{found.shoulder}, minted by {found.minting}"),
            ("other places", ", ".join(found.places)),
            ("a lot is", found.lots if found.lots == "batch" else f"an interval, {found.lots}"),
            ("kept in lists", f"{found.keep_days} days"),
        ]
    )


def _held(found: ShownCollection) -> str:
    held = found.held
    return f"since {show_time(held.since)} by {held.who}: {held.why}" if held else ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ProfileFlags:
    """What may be said about a collection."""

    dataset: Annotated[str | None, Parameter(help="the dataset its objects belong to")] = None
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="the namespace of that dataset")
    ] = None
    owner: Annotated[str | None, Parameter(help="whose local ids its objects have")] = None
    description: Annotated[str | None, Parameter(help="what it is for")] = None
    priority: Annotated[int | None, Parameter(help="of its jobs: 0 to 99, low first")] = None
    digests: Annotated[
        Literal["check", "require"] | None, Parameter(help="whether every file must have one")
    ] = None
    inherited: Annotated[
        Literal["size", "digest"] | None,
        Parameter(help="how an update checks the stored files that it takes over"),
    ] = None
    files_max: Annotated[int | None, Parameter(help="the most files of an object")] = None
    bytes_max: Annotated[int | None, Parameter(help="the most bytes of an object")] = None
    rows_max: Annotated[int | None, Parameter(help="the most rows of a manifest")] = None
    callback: Annotated[str | None, Parameter(help="the URL that is told of every job")] = None
    callback_secret_file: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="a file with the secret that signs callbacks"),
    ] = None
    mail: Annotated[tuple[str, ...], _many("who gets the reports; repeatable")] = ()
    confirm: Annotated[bool | None, Parameter(help="mail also when a batch is queued")] = None
    storage: Annotated[str | None, Parameter(help="another object store, by URL; for good")] = None
    shoulder: Annotated[str | None, Parameter(help="what its ARKs begin with")] = None
    minting: Annotated[Literal["local", "ezid"] | None, Parameter(help="who mints them")] = None
    place: Annotated[
        tuple[str, ...], _many("a URL prefix that may be read though not public; repeatable")
    ] = ()
    lots: Annotated[
        Literal["batch", "PT5M", "PT10M", "PT15M", "PT1H", "PT24H"] | None,
        Parameter(help="what a lot of its dataset is: a batch, or all that completed in a time"),
    ] = None
    keep_days: Annotated[int | None, Parameter(help="how long completed batches stay")] = None

    def given(self) -> Profile:
        """What was said."""
        said = {**asdict(self), SECRET: _secret(self.callback_secret_file), "places": self.place}
        named = {name: said.get(name) for name in ("dataset", *FIELDS)}
        return {name: value for name, value in named.items() if value not in (None, ())}


PROFILE = ProfileFlags()


@app.command(
    name="set",
    help_epilogue="""Examples:
  penstock ingest collections set maps --dataset maps --namespace library
  penstock ingest collections set maps --place http://10.0.0.5/ --place s3://in/
  penstock ingest collections set maps --callback https://x.org/done
  penstock ingest collections set maps --clear mail --no-confirm

What is not said stays as it is. A secret is read from a file or, with -, from
stdin: nobody sees it in the list of processes.""",
)
def set_collection(
    name: Name,
    /,
    *,
    profile: ProfileFlags = PROFILE,
    clear: Annotated[tuple[str, ...], _many("put this back to its default; repeatable")] = (),
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Make a collection, or change its profile."""
    with remote.connect() as client:
        done = _set(client, name, profile.given(), clear)
    if as_json:
        write_json(done)
        return
    _write(done)
    note(f"submit to it with: penstock ingest submit {name} PAYLOAD")


def _set(client: Client, name: str, given: Profile, clear: tuple[str, ...]) -> ShownCollection:
    before = _find(client, name)
    if before is None and "dataset" not in given:
        raise Invalid(f"there is no collection {name!r} yet; --dataset is needed to make it")
    kept = {} if before is None else before.profile
    for text in clear:
        field = text.replace("-", "_")
        if field not in FIELDS:
            raise Invalid(f"--clear: there is no {text!r}; it can be {', '.join(FIELDS)}")
        kept.pop(field, None)
    return client.put_collection(name, **{**kept, **given})


def _find(client: Client, name: str) -> ShownCollection | None:
    try:
        return client.collection(name)
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        return None


def _secret(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"--callback-secret-file {file} cannot be read: {error}") from None
    if not text.strip():
        raise Invalid(f"--callback-secret-file {file} is empty; put the secret into it")
    return text.strip()


@app.command
def delete(
    name: Name,
    /,
    *,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Forget a collection to which no batch is open; what it stored stays."""
    with remote.connect() as client:
        client.delete_collection(name)
    if as_json:
        write_json({"deleted": name})
    else:
        write_line(f"collection {name} is forgotten; what it stored stays")

"""`penstock ingest collections`."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from penstock.cli.formats import show_bytes, show_time
from penstock.cli.options import OPTIONS, Options, option
from penstock.cli.output import note, write_fields, write_line
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
    "penstock.cli.ingest.apply:app", name="apply", help="Create and change collections of a file."
)

Name = Annotated[str, Parameter(help="the collection")]
Profile = dict[str, Any]
SECRET = "callback_secret"
FIELDS = tuple(
    name for name in ShownCollection.__struct_fields__ if name not in ("name", "dataset", "held")
)
_NOT_FOUND = 404


@app.command(name="list")
def list_collections(*, options: Options = OPTIONS) -> None:
    """List the collections that batches can be submitted to."""
    with options.connect() as client:
        page = client.collections()
    if not page.collections and not options.json:
        write_line("there are no collections; create one with:")
        write_line("penstock ingest collections set NAME --dataset DATASET")
        return
    options.write_table(
        page,
        ("collection", "dataset", "description", "held"),
        (
            (each.name, f"{each.namespace}/{each.dataset}", each.description, _held(each))
            for each in page.collections
        ),
    )


@app.command
def show(name: Name, /, *, options: Options = OPTIONS) -> None:
    """Show the profile of a collection."""
    with options.connect() as client:
        collection = client.collection(name)
    options.write(collection, _write_collection)


def _write_collection(collection: ShownCollection) -> None:
    write_fields(
        [
            ("collection", collection.name),
            ("dataset", f"{collection.namespace}/{collection.dataset}"),
            ("description", collection.description),
            ("held", _held(collection)),
            ("owner of local ids", collection.owner or collection.name),
            (
                "priority",
                "by batch size" if collection.priority is None else str(collection.priority),
            ),
            ("digests", collection.digests),
            ("an update checks", f"the {collection.inherited} of the files that it keeps"),
            ("files at most", collection.files_max),
            ("bytes at most", show_bytes(collection.bytes_max)),
            ("rows at most", collection.rows_max),
            ("callback", collection.callback),
            ("callback secret", collection.callback_secret),
            ("mail", ", ".join(collection.mail)),
            ("confirmation", "when a batch is queued" if collection.confirm else None),
            ("storage", collection.storage or "the server's own"),
            ("ARKs", f"{collection.shoulder}, minted by {collection.minting}"),
            ("other locations", ", ".join(collection.places)),
            (
                "a lot is",
                collection.lots
                if collection.lots == "batch"
                else f"an interval, {collection.lots}",
            ),
            ("kept in lists", f"{collection.keep_days} days"),
        ]
    )


def _held(collection: ShownCollection) -> str:
    held = collection.held
    return f"since {show_time(held.since)} by {held.who}: {held.why}" if held else ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The profile of a collection."""

    dataset: Annotated[str | None, Parameter(help="the dataset of its objects")] = None
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="the namespace of that dataset")
    ] = None
    owner: Annotated[str | None, Parameter(help="the owner of its local ids")] = None
    description: Annotated[str | None, Parameter(help="what it contains")] = None
    priority: Annotated[
        int | None, Parameter(help="the priority of its jobs: 0 to 99, low first")
    ] = None
    digests: Annotated[
        Literal["check", "require"] | None, Parameter(help="whether every file must have one")
    ] = None
    inherited: Annotated[
        Literal["size", "digest"] | None,
        Parameter(help="how an update checks the stored files that it keeps"),
    ] = None
    files_max: Annotated[int | None, Parameter(help="the most files of an object")] = None
    bytes_max: Annotated[int | None, Parameter(help="the most bytes of an object")] = None
    rows_max: Annotated[int | None, Parameter(help="the most rows of a manifest")] = None
    callback: Annotated[str | None, Parameter(help="the URL to call for every job")] = None
    callback_secret_file: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="a file with the secret that signs callbacks"),
    ] = None
    mail: Annotated[tuple[str, ...], option("an address for reports; repeatable")] = ()
    confirm: Annotated[bool | None, Parameter(help="mail also when a batch is queued")] = None
    storage: Annotated[str | None, Parameter(help="another object store, by URL; for good")] = None
    shoulder: Annotated[str | None, Parameter(help="the prefix of its ARKs")] = None
    minting: Annotated[Literal["local", "ezid"] | None, Parameter(help="what mints its ARKs")] = (
        None
    )
    place: Annotated[
        tuple[str, ...], option("a private URL prefix that it may read; repeatable")
    ] = ()
    lots: Annotated[
        Literal["batch", "PT5M", "PT10M", "PT15M", "PT1H", "PT24H"] | None,
        Parameter(help="a lot of its dataset: a batch, or all objects of an interval"),
    ] = None
    keep_days: Annotated[int | None, Parameter(help="days that completed batches stay")] = None

    def changes(self) -> Profile:
        """Return the settings that have an option."""
        values = {**asdict(self), SECRET: _secret(self.callback_secret_file), "places": self.place}
        profile = {name: values.get(name) for name in ("dataset", *FIELDS)}
        return {name: value for name, value in profile.items() if value not in (None, ())}


PROFILE = ProfileOptions()


@app.command(
    name="set",
    help_epilogue="""Examples:
  penstock ingest collections set maps --dataset maps --namespace library
  penstock ingest collections set maps --place http://10.0.0.5/ --place s3://in/
  penstock ingest collections set maps --callback https://x.org/done
  penstock ingest collections set maps --clear mail --no-confirm

Settings without an option stay as they are. The secret comes from a file or,
with -, from stdin, so that the list of processes does not show it.""",
)
def set_collection(
    name: Name,
    /,
    *,
    profile: ProfileOptions = PROFILE,
    clear: Annotated[tuple[str, ...], option("reset this setting to its default; repeatable")] = (),
    options: Options = OPTIONS,
) -> None:
    """Create a collection, or change its profile."""
    with options.connect() as client:
        collection = _set(client, name, profile.changes(), clear)
    options.write(collection, _write_collection)
    if not options.json:
        note(f"submit to it: penstock ingest submit {name} PAYLOAD")


def _set(client: Client, name: str, changes: Profile, clear: tuple[str, ...]) -> ShownCollection:
    before = _find(client, name)
    if before is None and "dataset" not in changes:
        raise Invalid(f"there is no collection {name!r} yet; pass --dataset to create it")
    profile = {} if before is None else before.profile
    for text in clear:
        field = text.replace("-", "_")
        if field not in FIELDS:
            raise Invalid(f"--clear: no setting {text!r}; the settings are {', '.join(FIELDS)}")
        profile.pop(field, None)
    return client.put_collection(name, **{**profile, **changes})


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
        raise Invalid(f"--callback-secret-file {file} is empty; write the secret to it")
    return text.strip()


@app.command
def delete(name: Name, /, *, options: Options = OPTIONS) -> None:
    """Delete a collection without open batches; its stored objects stay."""
    with options.connect() as client:
        client.delete_collection(name)
    options.write_line({"deleted": name}, f"collection {name} is deleted; its stored objects stay")

"""`penstock ingest collections apply`."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter
from msgspec import Struct

from penstock.cli.options import OPTIONS, Options, option
from penstock.cli.output import Column, write_line, write_table
from penstock.errors import Invalid, Malformed
from penstock.ingest import collections as profiles
from penstock.schema.ingest import MASK, Collection, ShownCollection

app = App(
    name="apply",
    help_epilogue="""Examples:
  penstock ingest collections apply collections.toml --dry-run
  penstock ingest collections apply collections.toml

The file has a table for each collection:

  [maps]
  dataset = "maps"
  namespace = "library"
  mail = ["maps@example.org"]
  places = ["file:///data/in/"]

The settings are those of `set`, in snake_case. A missing setting has its
default. Only callback_secret, which you should not keep in the file, stays as
it is. Other collections stay as they are.""",
)

Profile = dict[str, Any]
SECRET = "callback_secret"


class CollectionChange(Struct, frozen=True):
    """The change of a collection: the old and new value of each setting."""

    collection: str
    made: bool
    changes: dict[str, tuple[Any, Any]]


class AppliedCollections(Struct, frozen=True, rename="camel"):
    """The changes that were applied, or would be."""

    dry_run: bool
    collections: list[CollectionChange]


@app.default
def apply(
    file: Annotated[Path, Parameter(help="the file")],
    /,
    *,
    dry_run: Annotated[bool, option("only show the changes")] = False,
    options: Options = OPTIONS,
) -> None:
    """Create and change collections as a file describes them."""
    profiles_of_file = read_profiles(file)
    changes = []
    with options.connect() as client:
        collections = {each.name: each for each in client.collections().collections}
        for name, described in profiles_of_file.items():
            before = collections.get(name)
            profile = _keep_secret(described, before)
            change = _compare(name, profile, before)
            changes.append(change)
            if not dry_run and (change.made or change.changes):
                client.put_collection(name, **profile)
    options.write(AppliedCollections(dry_run, changes), _write)


def _write(applied: AppliedCollections) -> None:
    for change in applied.collections:
        _write_change(change, dry_run=applied.dry_run)


def read_profiles(file: Path) -> dict[str, Profile]:
    """Read and check the profiles in a file."""
    try:
        tables = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"{file} is not TOML: {error}; begin a table with: [NAME]") from None
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}; name another file") from None
    if not tables:
        raise Invalid(f"{file} has no collection; begin a table with: [NAME]")
    return {name: _read_profile(file, name, table) for name, table in tables.items()}


def _read_profile(file: Path, name: str, table: object) -> Profile:
    where = f"{file}, [{name}]"
    if not isinstance(table, dict):
        raise Invalid(f"{file}: {name} is outside a table; begin a table with: [NAME]")
    settings = Collection.__struct_fields__[1:]
    for key in table:
        if key not in settings:
            near = difflib.get_close_matches(key, settings, n=1)
            instead = (
                f"did you mean {near[0]}?" if near else f"the settings are {', '.join(settings)}"
            )
            raise Invalid(f"{where}: there is no setting {key!r}; {instead}")
    names = dict(zip(settings, Collection.__struct_encode_fields__[1:], strict=True))
    values = {names[key]: value for key, value in table.items()}
    try:
        profile = profiles.check_collection(msgspec.convert({**values, "name": name}, Collection))
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {_in_snake_case(str(error))}") from None
    except Invalid as error:
        raise Invalid(f"{where}: {error}") from None
    return {key: getattr(profile, key) for key in settings}


def _in_snake_case(text: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])(?=[a-z]+`)", lambda upper: f"_{upper[1].lower()}", text)


def _keep_secret(profile: Profile, before: ShownCollection | None) -> Profile:
    """Add the masked secret of the server, unless the profile has one or needs none."""
    if before is None or profile[SECRET] is not None or profile["callback"] is None:
        return profile
    return {**profile, SECRET: before.callback_secret}


def _compare(name: str, profile: Profile, before: ShownCollection | None) -> CollectionChange:
    if before is None:
        return CollectionChange(
            name, True, {key: (None, value) for key, value in _custom_values(profile).items()}
        )
    old = before.profile
    changes = {key: (old[key], value) for key, value in profile.items() if old[key] != value}
    if SECRET in changes:
        changes[SECRET] = (old[SECRET], profile[SECRET] and MASK)
    return CollectionChange(name, False, changes)


def _custom_values(profile: Profile) -> Mapping[str, Any]:
    defaults = Collection(dataset="")
    custom = {key: value for key, value in profile.items() if value != getattr(defaults, key)}
    return {**custom, SECRET: MASK} if SECRET in custom else custom


def _write_change(change: CollectionChange, *, dry_run: bool) -> None:
    would = "would be " if dry_run else "is "
    if not change.made and not change.changes:
        write_line(f"collection {change.collection} is unchanged")
        return
    write_line(f"collection {change.collection} {would}{'created' if change.made else 'changed'}:")
    write_table(
        (Column("setting", whole=True), "old", "new"),
        ((key, _text(old), _text(new)) for key, (old, new) in change.changes.items()),
    )


def _text(value: object) -> str:
    if value is None or value == ():
        return "-"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)

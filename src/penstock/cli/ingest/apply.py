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

from penstock.cli.options import REMOTE, Json, RemoteFlags, switch
from penstock.cli.output import Column, write_json, write_line, write_table
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

The settings are those of `set`, in snake_case. One that is left out has its
default; only callback_secret, which is better kept elsewhere, stays as it is.
Collections that are not in the file are left alone.""",
)

Profile = dict[str, Any]
SECRET = "callback_secret"


class Change(Struct, frozen=True):
    """What applying a file does to a collection: for each setting, what it was and becomes."""

    collection: str
    made: bool
    changes: dict[str, tuple[Any, Any]]


class Applied(Struct, frozen=True, rename="camel"):
    """What applying a file did, or would do."""

    dry_run: bool
    collections: list[Change]


@app.default
def apply(
    file: Annotated[Path, Parameter(help="the file")],
    /,
    *,
    dry_run: Annotated[bool, switch("only show what would change")] = False,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Make collections as a file describes them."""
    wanted = read_profiles(file)
    done = []
    with remote.connect() as client:
        there = {each.name: each for each in client.collections().collections}
        for name, described in wanted.items():
            profile = _with_secret(described, there.get(name))
            change = compared(name, profile, there.get(name))
            done.append(change)
            if not dry_run and (change.made or change.changes):
                client.put_collection(name, **profile)
    if as_json:
        write_json(Applied(dry_run, done))
        return
    for change in done:
        _write_change(change, dry_run=dry_run)


def read_profiles(file: Path) -> dict[str, Profile]:
    """The profiles in a file, all of them checked."""
    try:
        tables = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"{file} is not TOML: {error}; begin a table with: [NAME]") from None
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}; name another file") from None
    if not tables:
        raise Invalid(f"there is no collection in {file}; begin a table with: [NAME]")
    return {name: _read_profile(file, name, table) for name, table in tables.items()}


def _read_profile(file: Path, name: str, table: object) -> Profile:
    where = f"{file}, [{name}]"
    if not isinstance(table, dict):
        raise Invalid(f"{file}: {name} stands outside of a table; begin a table with: [NAME]")
    known = Collection.__struct_fields__[1:]
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            instead = f"did you mean {near[0]}?" if near else f"it can be {', '.join(known)}"
            raise Invalid(f"{where}: there is no setting {key!r}; {instead}")
    names = dict(zip(known, Collection.__struct_encode_fields__[1:], strict=True))
    given = {names[key]: value for key, value in table.items()}
    try:
        profile = profiles.check_collection(msgspec.convert({**given, "name": name}, Collection))
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {_in_snake_case(str(error))}") from None
    except Invalid as error:
        raise Invalid(f"{where}: {error}") from None
    return {key: getattr(profile, key) for key in known}


def _in_snake_case(text: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])(?=[a-z]+`)", lambda upper: f"_{upper[1].lower()}", text)


def _with_secret(profile: Profile, before: ShownCollection | None) -> Profile:
    """The profile with the secret that is there, covered, unless it has one or needs none."""
    if before is None or profile[SECRET] is not None or profile["callback"] is None:
        return profile
    return {**profile, SECRET: before.callback_secret}


def compared(name: str, profile: Profile, before: ShownCollection | None) -> Change:
    """What would change."""
    if before is None:
        return Change(name, True, {key: (None, value) for key, value in _said(profile).items()})
    there = before.profile
    changes = {key: (there[key], value) for key, value in profile.items() if there[key] != value}
    if SECRET in changes:
        changes[SECRET] = (there[SECRET], profile[SECRET] and MASK)
    return Change(name, False, changes)


def _said(profile: Profile) -> Mapping[str, Any]:
    defaults = Collection(dataset="")
    said = {key: value for key, value in profile.items() if value != getattr(defaults, key)}
    return {**said, SECRET: MASK} if SECRET in said else said


def _write_change(change: Change, *, dry_run: bool) -> None:
    would = "would be " if dry_run else "is "
    if not change.made and not change.changes:
        write_line(f"collection {change.collection} is as it should be")
        return
    write_line(f"collection {change.collection} {would}{'made' if change.made else 'changed'}:")
    write_table(
        (Column("setting", whole=True), "was", "becomes"),
        ((key, _shown(was), _shown(now)) for key, (was, now) in change.changes.items()),
    )


def _shown(value: object) -> str:
    if value is None or value == ():
        return "-"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)

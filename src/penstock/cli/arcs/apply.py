"""`penstock arcs apply`."""

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter
from msgspec import Struct

from penstock.arcs.arrivals.arrival import Arrival
from penstock.arcs.files import Declared, read_declarations, read_module
from penstock.arcs.spec import Arc
from penstock.cli.options import REMOTE, Json, RemoteFlags, switch
from penstock.cli.output import note, write_json, write_line
from penstock.client import ApiError, Client
from penstock.errors import Invalid, NotFound
from penstock.schema import arcs as docs
from penstock.schema.arrivals import ShownArrival

app = App(
    name="apply",
    help_epilogue="""Examples:
  penstock arcs apply arcs.toml --dry-run
  penstock arcs apply arcs.yaml
  penstock arcs apply shop.pipeline

A file has a table for each arc, and for each dataset whose objects arrive:

  namespace = "shop"
  [arcs.clean]
  inputs = ["raw"]
  outputs = [{ dataset = "clean", interval = "PT1H" }]
  workload = ["python", "clean.py", "{task}", "{output}"]
  retry = { tries = 5 }
  [arrivals.raw]
  location = "s3://landing/raw"
  interval = "PT1H"

A command finds its inputs as files, whose paths {task} tells, and leaves its
lot in the folder {output}; what is in a bucket is fetched and uploaded for it.
With workload = { command = [...], fetch = false } it gets only URLs to read.

In YAML the tables are mappings. A Python module has functions with
@penstock.arc(inputs=["raw"], outputs=["clean"]) above them. It is imported
from the current folder; engines must be able to import it, too. What is left
out has its default. Arcs that are not named are left alone; `penstock arcs
delete` forgets one.""",
)

_FILES = (".toml", ".yaml", ".yml")
_NOT_FOUND = 404
Values = dict[str, Any]


class Change(Struct, frozen=True):
    """What is done to an arc or an arrival: for each setting, what it was and becomes."""

    kind: str
    name: str
    made: bool
    changes: dict[str, tuple[Any, Any]]


class Applied(Struct, frozen=True, rename="camel"):
    """What applying did, or would do."""

    dry_run: bool
    changes: list[Change]


@app.default
def apply(
    source: Annotated[str, Parameter(name="FILE|MODULE", help="what declares the arcs")],
    /,
    *,
    dry_run: Annotated[bool, switch("only show what would change")] = False,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Declare arcs as a file or a Python module describes them: all of them, or none."""
    wanted = read_source(source)
    with remote.connect() as client:
        there = {(arc.namespace, arc.name): arc for arc in client.arcs().arcs}
        done = [compared_arc(arc, there.get((arc.namespace, arc.name))) for arc in wanted.arcs]
        done += [compared_arrival(each, _arrival(client, each)) for each in wanted.arrivals]
        client.declare(
            [_plain(arc) for arc in wanted.arcs],
            [_plain(arrival) for arrival in wanted.arrivals],
            dry_run=dry_run,
        )
    if as_json:
        write_json(Applied(dry_run, done))
        return
    for change in done:
        _write(change, dry_run=dry_run)
    if not dry_run:
        note("`penstock arcs work` runs them, `penstock arcs status` shows where they stand")


def read_source(source: str) -> Declared:
    """What a file or a module declares."""
    path = Path(source)
    if path.suffix in _FILES:
        return read_declarations(path)
    name = source.removesuffix(".py").replace("/", ".") if source.endswith(".py") else source
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{name}.".startswith(f"{error.name}."):
            raise Invalid(f"module {name} cannot be imported: {error}") from None
        raise NotFound(
            f"there is no module {name} here; name a module of the current folder, or a file "
            f"that ends in {', '.join(_FILES)}"
        ) from None
    except Exception as error:
        raise Invalid(
            f"module {name} cannot be imported: {type(error).__name__}: {error}"
        ) from None
    return read_module(module)


def compared_arc(arc: Arc, before: docs.ShownArc | None) -> Change:
    """What would change of an arc."""
    name = f"{arc.namespace}/{arc.name}"
    wanted = _plain(arc)
    if before is None:
        return Change("arc", name, True, _said(wanted, Arc))
    return Change("arc", name, False, _compared(wanted, _snake(before)))


def compared_arrival(arrival: Arrival, before: ShownArrival | None) -> Change:
    """What would change of an arrival."""
    name = f"{arrival.namespace}/{arrival.dataset}"
    wanted = _plain(arrival)
    if before is None:
        return Change("arrival", name, True, _said(wanted, Arrival))
    return Change("arrival", name, False, _compared(wanted, _snake(before)))


def _compared(wanted: Values, there: Values) -> dict[str, tuple[Any, Any]]:
    return {key: (there[key], new) for key, new in wanted.items() if there[key] != new}


def _said(wanted: Values, kind: type[Arc] | type[Arrival]) -> dict[str, tuple[Any, Any]]:
    """What is not simply the default."""
    defaults = {f.name: f.default for f in msgspec.structs.fields(kind)}
    said = {key: value for key, value in wanted.items() if value != _plain(_default(defaults[key]))}
    return {key: (None, value) for key, value in said.items() if key not in ("name", "namespace")}


def _default(value: Any) -> Any:
    return None if value is msgspec.NODEFAULT else value


def _plain(value: object) -> Any:
    """A declaration as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _snake(document: Any) -> Any:
    """A document of the server as plain values, under the names that declarations have."""
    if isinstance(document, Struct):
        return {key: _snake(getattr(document, key)) for key in document.__struct_fields__}
    if isinstance(document, tuple | list):
        return [_snake(each) for each in document]
    return document


def _arrival(client: Client, arrival: Arrival) -> ShownArrival | None:
    try:
        return client.arrival(arrival.namespace, arrival.dataset)
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        return None


def _write(change: Change, *, dry_run: bool) -> None:
    verb = "would be" if dry_run else "is"
    what = f"{change.kind} {change.name}"
    if not change.made and not change.changes:
        write_line(f"{what} is as it is declared")
        return
    write_line(f"{what} {verb} {'made' if change.made else 'changed'}")
    for key, (before, after) in change.changes.items():
        old = "" if change.made else f"{_text(before)} → "
        write_line(f"  {key}: {old}{_text(after)}")


def _text(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    return msgspec.json.encode(_short(value)).decode()


def _short(value: Any) -> Any:
    """The value without what says nothing."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items() if each not in (None, "", [], {})}
    return [_short(each) for each in value] if isinstance(value, list) else value

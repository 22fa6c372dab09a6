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
from penstock.cli.options import OPTIONS, Options, option
from penstock.cli.output import note, write_line
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

A file has a table for each arc, and for each dataset with arriving objects:

  namespace = "shop"
  [arcs.clean]
  inputs = ["raw"]
  outputs = [{ dataset = "clean", interval = "PT1H" }]
  workload = ["python", "clean.py", "{task}", "{output}"]
  retry = { tries = 5 }
  [arrivals.raw]
  location = "s3://landing/raw"
  interval = "PT1H"

A command finds the paths of its input files in {task}, and writes its lot to
the folder {output}. Penstock downloads and uploads objects of buckets.
With workload = { command = [...], fetch = false } the command gets only URLs.

In YAML the tables are mappings. A Python module has functions with
@penstock.arc(inputs=["raw"], outputs=["clean"]) above them. It is imported
from the current folder, and engines must be able to import it too. Missing
settings have their defaults. Other arcs stay as they are; `penstock arcs
delete` deletes one.""",
)

_FILES = (".toml", ".yaml", ".yml")
_NOT_FOUND = 404
Values = dict[str, Any]


class DeclarationChange(Struct, frozen=True):
    """The change of an arc or an arrival: the old and new value of each setting."""

    kind: str
    name: str
    made: bool
    changes: dict[str, tuple[Any, Any]]


class AppliedArcs(Struct, frozen=True, rename="camel"):
    """The changes that were applied, or would be."""

    dry_run: bool
    changes: list[DeclarationChange]


@app.default
def apply(
    source: Annotated[
        str, Parameter(name="FILE|MODULE", help="the file or Python module with the arcs")
    ],
    /,
    *,
    dry_run: Annotated[bool, option("only show the changes")] = False,
    options: Options = OPTIONS,
) -> None:
    """Declare the arcs of a file or a Python module: all of them, or none."""
    declared = read_source(source)
    with options.connect() as client:
        arcs = {(arc.namespace, arc.name): arc for arc in client.arcs().arcs}
        changes = [_compare_arc(arc, arcs.get((arc.namespace, arc.name))) for arc in declared.arcs]
        changes += [_compare_arrival(each, _arrival(client, each)) for each in declared.arrivals]
        client.declare(
            [_plain(arc) for arc in declared.arcs],
            [_plain(arrival) for arrival in declared.arrivals],
            dry_run=dry_run,
        )
    options.write(AppliedArcs(dry_run, changes), _write)
    if not dry_run and not options.json:
        note("`penstock arcs start` runs them, `penstock arcs status` shows their progress")


def read_source(source: str) -> Declared:
    """Read the arcs and arrivals of a file or a module."""
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


def _compare_arc(arc: Arc, before: docs.ShownArc | None) -> DeclarationChange:
    name = f"{arc.namespace}/{arc.name}"
    wanted = _plain(arc)
    if before is None:
        return DeclarationChange("arc", name, True, _custom_values(wanted, Arc))
    return DeclarationChange("arc", name, False, _changed_values(wanted, _snake(before)))


def _compare_arrival(arrival: Arrival, before: ShownArrival | None) -> DeclarationChange:
    name = f"{arrival.namespace}/{arrival.dataset}"
    wanted = _plain(arrival)
    if before is None:
        return DeclarationChange("arrival", name, True, _custom_values(wanted, Arrival))
    return DeclarationChange("arrival", name, False, _changed_values(wanted, _snake(before)))


def _changed_values(wanted: Values, there: Values) -> dict[str, tuple[Any, Any]]:
    return {key: (there[key], new) for key, new in wanted.items() if there[key] != new}


def _custom_values(wanted: Values, kind: type[Arc] | type[Arrival]) -> dict[str, tuple[Any, Any]]:
    """Return the values that differ from the defaults, without names."""
    defaults = {f.name: f.default for f in msgspec.structs.fields(kind)}
    return {
        key: (None, value)
        for key, value in wanted.items()
        if key not in ("name", "namespace") and value != _plain(_default(defaults[key]))
    }


def _default(value: Any) -> Any:
    return None if value is msgspec.NODEFAULT else value


def _plain(value: object) -> Any:
    """Convert a declaration to plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _snake(document: Any) -> Any:
    """Convert a document of the server to plain values with snake_case names."""
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


def _write(applied: AppliedArcs) -> None:
    for change in applied.changes:
        _write_change(change, dry_run=applied.dry_run)


def _write_change(change: DeclarationChange, *, dry_run: bool) -> None:
    verb = "would be" if dry_run else "is"
    what = f"{change.kind} {change.name}"
    if not change.made and not change.changes:
        write_line(f"{what} is unchanged")
        return
    write_line(f"{what} {verb} {'created' if change.made else 'changed'}")
    for key, (before, after) in change.changes.items():
        old = "" if change.made else f"{_text(before)} → "
        write_line(f"  {key}: {old}{_text(after)}")


def _text(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    return msgspec.json.encode(_short(value)).decode()


def _short(value: Any) -> Any:
    """Drop empty values."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items() if each not in (None, "", [], {})}
    return [_short(each) for each in value] if isinstance(value, list) else value

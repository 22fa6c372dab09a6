"""Declarations of arcs and arrivals: in TOML or YAML files, or beside Python functions.

A file has a table for each arc (`[arcs.NAME]`) and for each dataset that arrives
(`[arrivals.NAME]`). `namespace` and `project` at its top are the defaults.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct

from penstock.arcs import spec
from penstock.arcs.arrivals import arrival as arrivals
from penstock.arcs.arrivals.arrival import Arrival
from penstock.arcs.spec import Arc
from penstock.config import SETTINGS, TABLES
from penstock.errors import Conflict, Invalid, Malformed

T = TypeVar("T", Arc, Arrival)
Table = Mapping[str, Any]

MARK = "penstock_arc"  # the attribute in which the decorator stores the declaration
_DEFAULTS = ("namespace", "project")
_ARCS = "arcs"
_ARRIVALS = "arrivals"
_YAML = (".yaml", ".yml")
_EXAMPLE = "begin an arc with: [arcs.NAME]"


class Declared(Struct, frozen=True):
    """The checked declarations of a file or module."""

    arcs: tuple[Arc, ...]
    arrivals: tuple[Arrival, ...] = ()


def read_declarations(path: Path) -> Declared:
    """Return the arcs and arrivals of a file."""
    tables = _read(path)
    for key in tables:
        if key not in (*TABLES, *SETTINGS):
            instead = _near(key, (_ARCS, _ARRIVALS, *_DEFAULTS))
            raise Invalid(f"{path}: {key!r} is unknown; {instead}")
    defaults = {key: tables[key] for key in _DEFAULTS if key in tables}
    arcs = tuple(
        read_arc({"name": name, **defaults, **table}, f"{path}, [{_ARCS}.{name}]")
        for name, table in _tables(path, tables, _ARCS)
    )
    namespace = {"namespace": defaults["namespace"]} if "namespace" in defaults else {}
    arriving = tuple(
        read_arrival({"dataset": name, **namespace, **table}, f"{path}, [{_ARRIVALS}.{name}]")
        for name, table in _tables(path, tables, _ARRIVALS)
    )
    if not arcs and not arriving:
        raise Invalid(f"there is no arc in {path}; {_EXAMPLE}")
    _check_once(str(path), arcs)
    return Declared(arcs, arriving)


def read_module(module: ModuleType) -> Declared:
    """Return the arcs of a Python module: its functions that have the decorator."""
    marked = {id(each): each for each in vars(module).values() if hasattr(each, MARK)}
    arcs = tuple(
        read_arc(getattr(function, MARK), f"{module.__name__}.{function.__name__}")
        for function in marked.values()
        if function.__module__ == module.__name__
    )
    if not arcs:
        raise Invalid(
            f"there is no arc in module {module.__name__}; put @penstock.arc(inputs=…, "
            "outputs=…) above a function"
        )
    _check_once(module.__name__, arcs)
    return Declared(arcs)


def read_arc(table: Table, where: str) -> Arc:
    """Return an arc. A dataset may be a name alone, and a workload a function or command alone."""
    fields = dict(table)
    for side in ("inputs", "outputs"):
        if side in fields:
            fields[side] = _datasets(fields[side])
    match fields.get("workload"):
        case str() as function:
            fields["workload"] = {"function": function}
        case list() | tuple() as command:
            fields["workload"] = {"command": command}
    if isinstance(fields.get("parts"), str):
        fields["parts"] = {"pattern": fields["parts"]}
    return _convert(fields, Arc, spec.check_arc, where)


def read_arrival(table: Table, where: str) -> Arrival:
    """Return where the objects of one dataset arrive."""
    fields = dict(table)
    if isinstance(fields.get("start"), date):  # both formats have time values
        fields["start"] = fields["start"].isoformat()
    return _convert(fields, Arrival, arrivals.check_arrival, where)


def _datasets(values: object) -> object:
    if isinstance(values, str) or not isinstance(values, Iterable):
        return values
    return [_dataset(each) if isinstance(each, str) else each for each in values]


def _dataset(name: str) -> Table:
    """Parse NAME or NAMESPACE/NAME; a namespace that is a URL goes up to its path."""
    scheme = name.find("://")
    slash = name.find("/", scheme + 3 if scheme > 0 else 0)
    if slash > 0 and name[slash + 1 :]:
        return {"namespace": name[:slash], "dataset": name[slash + 1 :]}
    return {"dataset": name}


def _convert(value: Table, kind: type[T], checked: Callable[[T], T], where: str) -> T:
    for key in value:
        if key not in kind.__struct_fields__:
            raise Invalid(f"{where}: there is no {key!r}; {_near(key, kind.__struct_fields__)}")
    try:
        return checked(msgspec.convert(value, kind))
    except (msgspec.ValidationError, Invalid) as error:
        raise Invalid(f"{where}: {error}{_advice(str(error))}") from None


def _advice(refusal: str) -> str:
    """Explain that YAML reads `1` as a number and `on` as a boolean where a text is expected."""
    is_plain = re.search("Expected `str[^`]*`, got `(int|float|bool)`", refusal)
    return "; put it in quotes" if is_plain else ""


def _tables(path: Path, tables: Table, key: str) -> Iterable[tuple[str, Table]]:
    table = tables.get(key) or {}
    if not isinstance(table, Mapping):
        raise Invalid(f"{path}: {key} is not a table; write [{key}.NAME]")
    for name, fields in table.items():
        if not isinstance(fields, Mapping):
            raise Invalid(f"{path}: {key}.{name} is not a table; write [{key}.{name}]")
        yield str(name), fields


def _check_once(where: str, arcs: Iterable[Arc]) -> None:
    seen: set[tuple[str, str]] = set()
    for arc in arcs:
        if (arc.namespace, arc.name) in seen:
            raise Conflict(f"{where} declares arc {arc.namespace}/{arc.name} twice")
        seen.add((arc.namespace, arc.name))


def _near(key: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(key), names, n=1)
    return f"did you mean {near[0]}?" if near else f"it can be {', '.join(names)}"


def _read(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.load(text, _Yaml) if path.suffix in _YAML else tomllib.loads(text)
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}; name another file") from None
    except yaml.YAMLError as error:
        raise Malformed(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"{path} is not TOML: {error}; {_EXAMPLE}") from None
    if not isinstance(content, Mapping):
        raise Invalid(f"there is no arc in {path}; give it a key `arcs`, with a mapping by name")
    return content


class _Yaml(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys; the first value would be lost silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)

"""Every call of the Python client with sample arguments, and what it would send."""

import inspect
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from penstock.client import Client
from penstock.client.names import Name
from penstock.client.request import Content, Operation, Request
from penstock.schema.catalog import DatasetField
from penstock.schema.operations import BadLots

OPERATIONS: dict[str, Operation[..., Any]] = {
    name: found for name in dir(Client) if isinstance(found := getattr(Client, name), Operation)
}
_BAD = BadLots(
    namespace="x", dataset="x", lot="x", version="x", any_version=True, job="x", job_version="x",
    start="x", end="x", batch="x", downstream_only=True,
)  # fmt: skip
_PLAIN: dict[Any, list[Any]] = {
    str: ["x"],
    int: [1],
    bool: [True, False],
    bytes: [b"{}"],
    Name: ["space/x"],
    Content: [io.BytesIO(b"x")],
    Any: ["x"],
    DatasetField: [DatasetField("x")],
    BadLots: [_BAD, BadLots()],
}


class Sample(NamedTuple):
    """One call: its name, and what it would send."""

    name: str
    request: Request[Any]


def samples() -> Iterator[Sample]:
    """Every call with what it must be given, with all that it may be given, with all but one."""
    for name, operation in OPERATIONS.items():
        function = inspect.unwrap(cast(Any, operation))
        hints = get_type_hints(function)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        needed = [each for each in parameters if each.default is each.empty]
        for some in (needed, parameters):
            choices = [_choices(hints[each.name]) for each in some]
            for values in itertools.product(*choices):
                yield _sample(name, some, values)
        for one in parameters:
            rest = [each for each in parameters if each is not one or each in needed]
            yield _sample(name, rest, [_choices(hints[each.name])[0] for each in rest])


def _sample(name: str, parameters: Sequence[inspect.Parameter], values: Sequence[Any]) -> Sample:
    given = dict(zip([each.name for each in parameters], values, strict=True))
    return Sample(name, OPERATIONS[name].request(**given))


def answer_type(name: str) -> Any:
    """What a call answers, as its description says."""
    (answer,) = get_args(get_type_hints(inspect.unwrap(cast(Any, OPERATIONS[name])))["return"])
    return answer


def _choices(hint: Any) -> list[Any]:
    """Values of a type; of a choice, each."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return list(inner)
    if origin in (Union, UnionType):
        kinds = [kind for kind in inner if kind is not NoneType and kind.__module__ != "msgspec"]
        return _choices(kinds[0])
    if origin is tuple:
        return [tuple(_choices(kind)[0] for kind in inner)]
    if origin in (Sequence, Iterable):
        return [[_choices(inner[0])[0]]] if inner else [["x"]]
    if origin is Mapping:
        return [{"x": 1}]
    raise AssertionError(f"there is no sample of {hint}")

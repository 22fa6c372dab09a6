"""The declaration of an arc: its inputs and outputs, its workload, and how to run it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from penstock.catalog.events.known_facets import DatasetName
from penstock.config import MASK
from penstock.errors import Invalid
from penstock.lots.manifests import ArcRef
from penstock.schema.arcs import (
    BackOffSeconds,
    Bytes,
    Count,
    EmptyOutput,
    LeaseSeconds,
    OnEmpty,
    TimeoutSeconds,
)
from penstock.schema.locks import Stale
from penstock.schema.lot_ids import Interval

_NAME = re.compile(r"[^\x00-\x1f/\\]{1,200}")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_PLACEHOLDER = re.compile(r"(?<!\$)\{(lot|part|output|manifest|task)\}")  # ${lot} is the shell's
PART_FIELD = re.compile(r"\{(\w+)\}")

T = TypeVar("T")


class Input(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dataset that an arc reads. One that is only joined must exist, but triggers no run.

    `running_max` limits its lots that run at once, for all arcs together.
    """

    dataset: str
    namespace: str = ""
    subscribe: bool = True
    running_max: Count | None = None


class Output(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dataset that an arc writes.

    `version` labels the interval of its lots. `empty` is the policy for a workload that writes
    nothing.
    """

    dataset: str
    namespace: str = ""
    version: str = "1"
    interval: str = ""
    running_max: Count | None = None
    empty: EmptyOutput = EmptyOutput.FAIL


class Workload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Python function as `module:function`, or a command; one of the two.

    With `fetch`, a command gets its inputs as files, even from a bucket. `pass_environment` names
    variables of the engine that a command gets, if the engine allows them.
    """

    function: str | None = None
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    pass_environment: tuple[str, ...] = ()
    timeout_seconds: TimeoutSeconds | None = None
    fetch: bool = True


class Parts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a lot is split: by a pattern in its URIs, by size, or by a function."""

    pattern: str | None = None  # such as year={year}/month={month}
    bytes_max: Bytes | None = None
    function: str | None = None
    running_max: Count = 4


class Retry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of tries of a lot, and the backoff after a failure."""

    tries: Count = 3
    back_off_seconds: BackOffSeconds = 10
    lease_seconds: LeaseSeconds = 60


class Arc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An arc as it is declared.

    `stale` is the policy for a lot of which an input gets a newer version. `checks` are functions
    that check the output; a lot that fails a check is held.
    """

    name: str = ""
    namespace: str = "default"
    project: str = "default"
    version: str = "1"
    description: str = ""
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    workload: Workload
    parts: Parts | None = None
    retry: Retry = Retry()
    running_max: Count = 4
    on_empty: OnEmpty = OnEmpty.RUN
    stale: Stale = Stale.RERUN
    checks: tuple[str, ...] = ()
    newest_first: bool = False

    @property
    def ref(self) -> ArcRef:
        """The name in its state keys."""
        return ArcRef(self.namespace, self.name, self.project, self.version)

    @property
    def input_names(self) -> tuple[DatasetName, ...]:
        """The datasets that it reads."""
        return tuple(DatasetName(i.namespace or self.namespace, i.dataset) for i in self.inputs)

    @property
    def output_names(self) -> tuple[DatasetName, ...]:
        """The datasets that it writes."""
        return tuple(DatasetName(o.namespace or self.namespace, o.dataset) for o in self.outputs)


_decode = msgspec.json.Decoder(Arc).decode


def to_text(arc: Arc) -> str:
    """Encode a declaration as it is stored."""
    return msgspec.json.encode(arc).decode()


def without_values(arc: Arc) -> Arc:
    """Return the declaration without the values of its environment, which may be secrets."""
    environment = dict.fromkeys(arc.workload.environment, MASK)
    workload = msgspec.structs.replace(arc.workload, environment=environment)
    return msgspec.structs.replace(arc, workload=workload)


def from_text(text: str) -> Arc:
    """Decode a stored declaration."""
    return _decode(text)


def check_arc(arc: Arc) -> Arc:
    """Return the declaration, or raise Invalid if it cannot work."""
    for what, name in (("arc", arc.name), ("project", arc.project), ("version", arc.version)):
        if not _NAME.fullmatch(name) or name in {".", ".."}:
            raise Invalid(
                f"{name[:100]!r} cannot be the {what} name of an arc; use 1 to 200 characters "
                "without a slash"
            )
    where = f"arc {arc.namespace}/{arc.name}"
    if not arc.inputs or not any(each.subscribe for each in arc.inputs):
        raise Invalid(f"{where} subscribes to nothing; name an input, for example a clock dataset")
    if not arc.outputs:
        raise Invalid(f"{where} has no output; name the dataset whose lots it makes")
    for side, names in (("input", arc.input_names), ("output", arc.output_names)):
        if twice := _twice(names):
            raise Invalid(f"{where} has {side} {twice.namespace}/{twice.name} twice; name it once")
    for output in arc.outputs:
        if output.interval and output.interval not in tuple(Interval):
            raise Invalid(
                f"{output.interval[:100]!r} is no interval of lots; use one of "
                f"{', '.join(Interval)}, or leave it out"
            )
    load = arc.workload
    if (load.function is None) == (not load.command):
        raise Invalid(f"the workload of {where} is a function or a command; name one of the two")
    of_parts = arc.parts.function if arc.parts else None
    for function in (load.function, of_parts, *arc.checks):
        if function is not None and not _FUNCTION.fullmatch(function):
            raise Invalid(f"{function!r} does not name a function; write module:function")
    _check_command(load, where)
    if arc.parts is not None:
        _check_parts(arc.parts, where)
    return arc


def _check_command(load: Workload, where: str) -> None:
    if load.command and not load.command[0]:
        raise Invalid(f"the command of {where} begins with nothing; name a program first")
    for name, value in load.environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise Invalid(f"{where} cannot set {name!r} in the environment; use a name without =")
    for name in load.pass_environment:
        if not name or "=" in name or "\0" in name:
            raise Invalid(f"{where} cannot pass {name!r}; name a variable of the engine")
    for text in load.command:
        if "\0" in text:
            raise Invalid(f"the command of {where} has a NUL character in {text[:100]!r}")
        match = _PLACEHOLDER.search(text)
        if match is not None and match[0] != text:
            raise Invalid(
                f"the command of {where} has {match[0]} inside of {text[:100]!r}, where nothing "
                "is put in for it; let it be an argument of its own, or use the environment: "
                f"PENSTOCK_{match[1].upper()}"
            )


def _check_parts(parts: Parts, where: str) -> None:
    ways = (parts.pattern, parts.bytes_max, parts.function)
    if sum(way is not None for way in ways) != 1:
        raise Invalid(f"{where} is split by a pattern, by bytes_max or by a function: name one")
    if parts.pattern is None:
        return
    of_pattern = f"pattern {parts.pattern[:100]!r} of the parts of {where}"
    if not parts.pattern.strip("/"):
        raise Invalid(f"{of_pattern} names no part; write it such as day={{day}}/")
    fields = PART_FIELD.findall(parts.pattern)
    for field in fields:
        if not field.isidentifier():
            raise Invalid(f"{of_pattern} has {{{field}}}; begin a field with a letter")
    if twice := _twice(fields):
        raise Invalid(f"{of_pattern} has {{{twice}}} twice; give each field a name of its own")


def _twice(names: Sequence[T]) -> T | None:
    return next((name for index, name in enumerate(names) if name in names[:index]), None)


class ByName(Mapping[str, T], Generic[T]):
    """A mapping from dataset names. The whole name always works, a bare one if it is unique."""

    def __init__(self, each: Iterable[tuple[str, str, T]]) -> None:
        """Map entries, each a namespace, a name and a value."""
        self._all = tuple(each)
        self._read: dict[str, list[int]] = {}
        for position, (namespace, name, _) in enumerate(self._all):
            for text in (name, f"{namespace}/{name}"):
                self._read.setdefault(text, []).append(position)

    def __getitem__(self, name: str) -> T:
        positions = self._read[name]
        if len(positions) > 1:
            whole = " or ".join("/".join(self._all[position][:2]) for position in positions)
            raise Invalid(f"{name!r} may be {whole}; write it as NAMESPACE/NAME")
        return self._all[positions[0]][2]

    def __iter__(self) -> Iterator[str]:
        """Yield the shortest name of each entry."""
        for namespace, name, _ in self._all:
            yield name if len(self._read[name]) == 1 else f"{namespace}/{name}"

    def __len__(self) -> int:
        return len(self._all)


def variable_names(prefix: str, datasets: Sequence[tuple[str, str]]) -> list[str]:
    """Return names of environment variables for datasets, each a namespace and a name.

    Bare names if they differ; for equal ones, the namespace goes first.
    """
    short = [f"{prefix}_{_word(name)}" for _, name in datasets]
    uses = Counter(short)
    return [
        name if uses[name] == 1 else f"{prefix}_{_word(each[0])}_{_word(each[1])}"
        for name, each in zip(short, datasets, strict=True)
    ]


def _word(text: str) -> str:
    return re.sub("[^A-Z0-9]+", "_", text.upper()).strip("_")

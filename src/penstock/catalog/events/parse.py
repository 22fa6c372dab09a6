"""OpenLineage events as received, parsed once into types."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from penstock import ids
from penstock.catalog.events.facets import NO_FACETS, Facets
from penstock.clock import Micros, parse_time
from penstock.errors import Invalid, Malformed, TooLarge

# Python does not parse longer integers. Storing one would make every list that contains it
# unreadable.
INTEGER_DIGITS_MAX: Final = 4000

# The quantifiers are possessive, and an unterminated string extends to the end. Otherwise hostile
# input would restart the search at every quote.
_QUOTED = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[][{},]', re.DOTALL)
# The first half of a surrogate pair without its second half, as an escape.
_LONE_HALF = re.compile(
    rb"(?<!\\)(?:\\\\)*\\u(d[89ab][0-9a-f]{2})(?!\\ud[c-f][0-9a-f]{2})", re.IGNORECASE
)
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_BRACKETS_OPEN_MAX = 100_000  # longer events are refused, each alone
# A few thousand strings. One call over a large body would block every other thread until it ends.
_STRETCH = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+"?){1,4096}+', re.DOTALL)
_STRETCH_BYTES = 1024 * 1024
_DIGITS = b"0123456789"
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (INTEGER_DIGITS_MAX + 1))


def check_depth(body: bytes, depth_max: int) -> None:
    """Refuse JSON that nests deeper than the limit, before anything recurses into it."""
    if body.count(b"{") + body.count(b"[") <= depth_max:
        return
    depth = 0
    for stretch in _stretches(body):
        for bracket in _QUOTED.sub(b"", stretch).translate(None, _NOT_BRACKETS):
            if bracket in b"{[":
                depth += 1
                if depth > depth_max:
                    raise TooLarge(f"the JSON nests deeper than {depth_max} levels; flatten it")
            else:
                depth -= 1


def _stretches(body: bytes) -> Iterator[bytes]:
    """Split a large body between strings."""
    if len(body) <= _STRETCH_BYTES:
        yield body
        return
    for match in _STRETCH.finditer(body):
        yield match[0]


def check_numbers(body: bytes) -> None:
    """Refuse numbers with more digits than readers accept."""
    # A number that is too long contains one of these positions.
    places = range(0, len(body), INTEGER_DIGITS_MAX)
    if len(body) <= INTEGER_DIGITS_MAX or not any(
        _LONG_NUMBER.search(body, max(0, at - INTEGER_DIGITS_MAX), at + INTEGER_DIGITS_MAX + 1)
        for at in places
        if body[at] in _DIGITS
    ):
        return
    if _LONG_NUMBER.search(_QUOTED.sub(b"", body)):
        raise Invalid(
            f"a number has more than {INTEGER_DIGITS_MAX} digits, more than readers accept; "
            "write it as a text"
        )


def why_not_json(error: Exception, body: bytes) -> str:
    """Describe the error in a text that is not JSON.

    msgspec reports a lone half of a surrogate pair as a truncated text.
    """
    half = _LONE_HALF.search(body) if "truncated" in str(error) else None
    if half is None:
        return str(error)
    return f"it holds half of a surrogate pair, \\u{half[1].decode()}; write both or neither"


def items_of_list(body: bytes) -> Sequence[bytes]:
    """Split a JSON list into items by brackets alone; some items may be invalid."""
    text = body.strip()
    items: list[bytes] = []
    depth, begin = 0, 1
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case b"[" | b"{":
                depth += 1
                if depth > _BRACKETS_OPEN_MAX:
                    break
            case b"]" | b"}":
                depth -= 1
            case b"," if depth == 1:
                items.append(text[begin : mark.start()])
                begin = mark.end()
        if depth == 0:
            break
    if not text.startswith(b"[") or depth != 0 or mark.end() != len(text):
        raise Malformed("the body is not JSON: no list whose brackets fit together")
    return [*items, text[begin : mark.start()]]


RUN, JOB, DATASET = "RUN", "JOB", "DATASET"
EVENT_TYPES = frozenset({"START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"})


class Limits(Struct, frozen=True):
    """Limits on the size of one event."""

    name_length_max: int = 1024
    json_depth_max: int = 64


class Mention(Struct, frozen=True, gc=False):
    """A dataset as an event names it, on one side of a job."""

    id: str
    namespace: str
    name: str
    facets: Facets
    io_facets: Facets


class Event(Struct, frozen=True, gc=False):
    """A checked event: every name has a legal length and every id is known."""

    kind: str
    at: Micros
    event_type: str  # "" if the event has none
    payload: str
    job_id: str
    job_namespace: str
    job_name: str
    job_facets: Facets
    run_id: str | None
    external_id: str | None
    run_facets: Facets
    inputs: tuple[Mention, ...]
    outputs: tuple[Mention, ...]
    dataset: Mention | None


class _Run(Struct, gc=False):
    runId: str
    facets: dict[str, Raw] | None = None


class _Job(Struct, gc=False):
    namespace: str
    name: str
    facets: dict[str, Raw] | None = None


class _Dataset(Struct, gc=False):
    namespace: str
    name: str
    facets: dict[str, Raw] | None = None
    inputFacets: dict[str, Raw] | None = None
    outputFacets: dict[str, Raw] | None = None


class _Event(Struct, gc=False):
    eventTime: str
    eventType: str | None = None
    schemaURL: str | None = None
    run: _Run | None = None
    job: _Job | None = None
    dataset: _Dataset | None = None
    inputs: list[_Dataset] | None = None
    outputs: list[_Dataset] | None = None


_decode_event = msgspec.json.Decoder(_Event).decode


def check_name(name: str, what: str, length_max: int) -> None:
    """Refuse texts that cannot be names in paths."""
    check_text(name, what, length_max)
    if name in ids.DOTS:
        raise Invalid(f"{what} is {name!r}, which means a folder in a path; use another name")


def check_text(text: str, what: str, length_max: int) -> None:
    """Refuse texts that are empty, too long or contain NUL."""
    if not text or text.isspace():
        raise Invalid(f"{what} is empty; give it a name")
    if len(text) > length_max or (not text.isascii() and len(text.encode()) > length_max):
        raise TooLarge(f"{what} has {len(text.encode())} bytes; at most {length_max} are allowed")
    if "\x00" in text:
        raise Invalid(f"{what} holds a NUL character; remove it")


def read_event(body: bytes, limits: Limits) -> Event:
    """Parse and check an event of any of the three kinds."""
    check_depth(body, limits.json_depth_max)
    try:
        raw = _decode_event(body)
        payload = body.decode()
    except msgspec.ValidationError as error:
        raise Invalid(f"not an OpenLineage event: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body is not JSON: {why_not_json(error, body)}") from None
    check_numbers(body)
    if "\x00" in payload:
        raise Malformed("the body holds a NUL character; write it as \\u0000 or leave it out")
    kind = _kind(raw)
    event_type = (raw.eventType or "").upper()
    if event_type and event_type not in EVENT_TYPES:
        raise Invalid(f"eventType {event_type[:32]!r} is none of {', '.join(sorted(EVENT_TYPES))}")
    job, run = raw.job, raw.run
    dataset = raw.dataset if kind == DATASET else None
    if kind == DATASET:
        if dataset is None:
            raise Invalid("a dataset event needs `dataset`")
        job = run = None
    elif job is None:
        raise Invalid(f"a {kind.lower()} event needs `job` with namespace and name")
    elif kind == RUN and run is None:
        raise Invalid("a run event needs `run` with a runId")
    elif kind == JOB:
        run = None
    if job is not None:
        check_name(job.namespace, "job.namespace", limits.name_length_max)
        check_name(job.name, "job.name", limits.name_length_max)
    if run is not None:
        check_name(run.runId, "run.runId", limits.name_length_max)
    mapped = ids.run_id(run.runId) if run else None
    return Event(
        kind=kind,
        at=parse_time(raw.eventTime),
        event_type=event_type,
        payload=payload,
        job_id=ids.job_id(job.namespace, job.name) if job else "",
        job_namespace=job.namespace if job else "",
        job_name=job.name if job else "",
        job_facets=(job.facets if job else None) or NO_FACETS,
        run_id=mapped,
        external_id=run.runId if run and mapped != run.runId else None,
        run_facets=(run.facets if run else None) or NO_FACETS,
        inputs=_mentions(raw.inputs, "inputs", limits) if raw.inputs else (),
        outputs=_mentions(raw.outputs, "outputs", limits) if raw.outputs else (),
        dataset=_mentions([dataset], "dataset", limits)[0] if dataset else None,
    )


def _kind(raw: _Event) -> str:
    """Return the kind by the last part of schemaURL, or by the content."""
    last = (raw.schemaURL or "").rsplit("/", 1)[-1]
    if last == "DatasetEvent":
        return DATASET
    if last == "JobEvent":
        return JOB
    if last != "RunEvent" and raw.run is None:
        return DATASET if raw.dataset is not None else JOB if raw.job is not None else RUN
    return RUN


def _mentions(datasets: list[_Dataset], where: str, limits: Limits) -> tuple[Mention, ...]:
    for dataset in datasets:
        check_name(dataset.namespace, f"{where}.namespace", limits.name_length_max)
        check_name(dataset.name, f"{where}.name", limits.name_length_max)
    return tuple(
        Mention(
            ids.dataset_id(d.namespace, d.name),
            d.namespace,
            d.name,
            d.facets or NO_FACETS,
            (d.outputFacets if where == "outputs" else d.inputFacets) or NO_FACETS,
        )
        for d in datasets
    )

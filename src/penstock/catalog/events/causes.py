"""The cause of a failed run, as its producer reported it.

Producers use different facets: OpenLineage's `errorMessage`, Spark's `spark.exception`, dbt's
`test`, and results of checks on inputs.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from penstock.catalog.events.facets import Facets
from penstock.catalog.events.known_facets import ASSERTIONS, EXPECTATIONS

T = TypeVar("T")

ERROR: Final = "errorMessage"
CAUSE_CHARS_MAX: Final = 4000
_LISTED_MAX: Final = 5
_NOT_ERRORS: Final = frozenset({"warn", "warning", "info"})
_SCHEMA: Final = (
    "https://openlineage.io/spec/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet"
)


class _Error(Struct, rename="camel"):
    message: str | None = None
    stack_trace: str | None = None


class _Test(Struct):
    name: str
    status: str
    severity: str | None = None
    expected: str | None = None
    actual: str | None = None


class _Tests(Struct):
    tests: list[_Test]


class _Assertion(Struct, rename="camel"):
    success: bool
    assertion: str | None = None
    expectation_type: str | None = None
    column: str | None = None
    severity: str | None = None
    expected: str | None = None
    actual: str | None = None


class _Assertions(Struct):
    assertions: list[_Assertion]


# Create decoders here, not at first use: msgspec crashes if two threads first use a type at once.
_decode_error = msgspec.json.Decoder(_Error)
_decode_tests = msgspec.json.Decoder(_Tests)
_decode_assertions = msgspec.json.Decoder(_Assertions)


def cause_of(run_facets: Facets, checks: Iterable[Facets] = ()) -> str | None:
    """Return the cause of a failure from the facets of a run or of the datasets that it checked."""
    for name in (ERROR, "spark.exception"):
        error = _read(run_facets, name, _decode_error)
        if error is not None and (message := _message(error)):
            return _cut(message)
    tests = _read(run_facets, "test", _decode_tests)
    failed = [_test(test) for test in tests.tests if _is_failed(test)] if tests else []
    for facets in checks:
        failed += _failed_checks(facets)
    return _cut(_listed(list(dict.fromkeys(failed)))) if failed else None


def error_facet(message: str) -> Raw:
    """Return the facet with the cause of a failed run of ours."""
    facet = {"_schemaURL": _SCHEMA, "message": message, "programmingLanguage": "unknown"}
    return Raw(msgspec.json.encode(facet))


def _message(error: _Error) -> str:
    """Return the message, or the first line of the stack trace."""
    lines = (error.message or "").strip() or (error.stack_trace or "").strip().partition("\n")[0]
    return lines.strip()


def _is_failed(test: _Test) -> bool:
    return test.status.lower() in ("fail", "error") and not _is_warning(test.severity)


def _is_warning(severity: str | None) -> bool:
    return (severity or "").lower() in _NOT_ERRORS


def _failed_checks(facets: Facets) -> Iterator[str]:
    for name in (ASSERTIONS, EXPECTATIONS):
        results = _read(facets, name, _decode_assertions)
        for each in results.assertions if results is not None else ():
            if not each.success and not _is_warning(each.severity):
                check = each.assertion or each.expectation_type or "a check"
                named = f"{check} of {each.column}" if each.column else check
                yield named + _compared(each.expected, each.actual)


def _test(test: _Test) -> str:
    return test.name + _compared(test.expected, test.actual)


def _compared(expected: str | None, actual: str | None) -> str:
    if actual is None:
        return ""
    return f" (expected {expected}, was {actual})" if expected is not None else f" (was {actual})"


def _listed(failed: list[str]) -> str:
    more = len(failed) - _LISTED_MAX
    listed = ", ".join(failed[:_LISTED_MAX]) + (f" and {more} more" if more > 0 else "")
    return f"{'test' if len(failed) == 1 else 'tests'} failed: {listed}"


def _cut(text: str) -> str:
    text = text.replace("\x00", "")
    return text if len(text) <= CAUSE_CHARS_MAX else f"{text[: CAUSE_CHARS_MAX - 1]}…"


def _read(facets: Facets, name: str, decoder: "msgspec.json.Decoder[T]") -> T | None:
    """Decode a facet; return None if it does not have the expected shape."""
    raw: Any = facets.get(name)
    if raw is None:
        return None
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None

"""A plain function made an arc: `@penstock.arc(inputs=…, outputs=…)`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from penstock.errors import Invalid

F = TypeVar("F", bound=Callable[..., Any])
Dataset = str | Mapping[str, Any]

MARK = "penstock_arc"


def arc(
    *,
    inputs: Sequence[Dataset],
    outputs: Sequence[Dataset],
    namespace: str | None = None,
    name: str | None = None,
    project: str | None = None,
    version: str | None = None,
    description: str | None = None,
    parts: str | Mapping[str, Any] | None = None,
    retry: Mapping[str, int] | None = None,
    running_max: int | None = None,
    on_empty: Literal["run", "skip"] | None = None,
    stale: Literal["rerun", "hold", "ignore"] | None = None,
    checks: Sequence[str] | None = None,
    newest_first: bool | None = None,
    timeout_seconds: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Declare that a function is the workload of an arc; `penstock arcs apply MODULE` applies it.

    The function is given the lot's context: what to read, and where to write. It stays as it is
    and can be called as before. Datasets are NAME, NAMESPACE/NAME, or mappings that say more:
    `{"dataset": "rates", "subscribe": False}`. Parts are a pattern in the URIs of the inputs, or a
    mapping with `pattern`, `bytes_max` or `function`. Checks are functions, as `module:function`,
    that look at what was made. What is left out has its default.
    """

    def decorate(function: F) -> F:
        _check_place(function)
        said: dict[str, object] = {
            "namespace": namespace,
            "project": project,
            "version": version,
            "description": description or _first_line(function.__doc__),
            "parts": parts,
            "retry": retry,
            "running_max": running_max,
            "on_empty": on_empty,
            "stale": stale,
            "checks": list(checks) if checks is not None else None,
            "newest_first": newest_first,
        }
        workload: dict[str, object] = {
            "function": f"{function.__module__}:{function.__qualname__}",
            "timeout_seconds": timeout_seconds,
            "environment": environment,
        }
        declared = {
            "name": name or function.__name__,
            "inputs": list(inputs),
            "outputs": list(outputs),
            **_given(said),
            "workload": _given(workload),
        }
        setattr(function, MARK, declared)
        return function

    return decorate


def _check_place(function: Callable[..., object]) -> None:
    if "<locals>" in function.__qualname__:
        raise Invalid(
            f"{function.__qualname__} cannot be an arc: other processes have to find it; "
            "define it at the top of a module"
        )


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def _first_line(text: str | None) -> str | None:
    return text.strip().splitlines()[0] if text and text.strip() else None

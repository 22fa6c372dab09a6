"""Routes, and the tree that finds the one a request is for.

A path is cut into segments before it is decoded: a dataset named `a/b` is one segment, `a%2Fb`.
No name is `.` or `..`: on their way here such a path may have become the path of something else.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, get_type_hints
from urllib.parse import unquote_to_bytes

from penstock.errors import Malformed, NotFound
from penstock.schema.admin import KeyRole
from penstock.server.errors import MethodNotAllowed

BASE = "/api/v1"
_VARIABLE = re.compile(r"\{(\w+)\}")
_GIVEN = frozenset({"tx", "call", "visit", "key", "now", "query", "body", "content", "stream"})


class Reach(Enum):
    """What a call touches, which decides about keys that are for one namespace only."""

    NAMESPACE = "the namespace in the path"
    OWN = "what the key may see; the handler narrows it"
    SHARED = "what all namespaces share"
    EVERYTHING = "several namespaces at once"


@dataclass(frozen=True, eq=False)
class Route:
    """One method of one path, and the function that serves it.

    The function's parameters say what it needs: `tx` (it reads, in a thread), `call` (it writes,
    in the event loop), `visit` (it works on the ingest queue, in a thread), `key`, `now`, `query`,
    `body` (parsed), `content` (as it came), `stream` (as it comes), and the variables of the path.
    Its annotations type the query, the body and the answer; its docstring is its documentation.
    The OpenAPI document is made from the same; `accepts`, `media` and `also` (another status of
    success) tell it what the annotations cannot. With `rest`, the last variable takes all that is
    left of the path: some clients send a name with its slashes as they are.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    reach: Reach = Reach.NAMESPACE
    role: KeyRole | None = KeyRole.READER
    status: int = 200
    also: int | None = None
    accepts: Any = None
    media: str = "application/json"
    rest: bool = False

    def __post_init__(self) -> None:
        unknown = self.needs - _GIVEN - set(self.variables)
        missing = set(self.variables) - self.needs
        if unknown or missing:
            raise TypeError(f"{self.name}: parameters {unknown or missing} do not fit the path")
        if self.reach is Reach.NAMESPACE and "namespace" not in self.variables:
            raise TypeError(f"{self.name}: there is no namespace in the path to check")

    @property
    def name(self) -> str:
        """The route as people write it."""
        return f"{self.method} {self.path}"

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables of the path, in their order."""
        return tuple(_VARIABLE.findall(self.path))

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The types of the function's parameters, and of what it returns."""
        return get_type_hints(self.handler, include_extras=True)

    @cached_property
    def needs(self) -> frozenset[str]:
        """The names of the function's parameters."""
        return frozenset(inspect.signature(self.handler).parameters)

    @cached_property
    def reads(self) -> bool:
        """Whether the function is a plain read, to be run in a thread."""
        return "tx" in self.needs

    @cached_property
    def visits(self) -> bool:
        """Whether the function works on the ingest queue, to be run in a thread of ingest."""
        return "visit" in self.needs

    @cached_property
    def streams(self) -> bool:
        """Whether the function takes the body while it arrives."""
        return "stream" in self.needs


class Node:
    """A place in the tree of paths."""

    __slots__ = ("children", "methods", "rest", "variable")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.variable: Node | None = None
        self.rest = False
        self.methods: dict[str, Route] = {}

    def child(self, segment: str) -> "Node":
        """The place one segment further, made if it is not there."""
        if not _VARIABLE.fullmatch(segment):
            return self.children.setdefault(segment, Node())
        if self.variable is None:
            self.variable = Node()
        return self.variable

    def find(self, segments: list[str], at: int, values: list[str]) -> "Node | None":
        """The place that the rest of the segments leads to; collects variables on the way."""
        if self.rest:
            values[-1] = "/".join(segments[at - 1 :])
            return self
        if at == len(segments):
            return self if self.methods else None
        fixed = self.children.get(segments[at])
        found = fixed.find(segments, at + 1, values) if fixed else None
        if found or self.variable is None or not segments[at]:
            return found
        values.append(segments[at])
        found = self.variable.find(segments, at + 1, values)
        if found is None:
            values.pop()
        return found


@dataclass
class Router:
    """All routes, found by the segments of a path and not one after the other."""

    routes: Iterable[Route]
    _root: Node = field(default_factory=Node, init=False)
    _fixed: dict[tuple[str, bytes], Route] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for route in self.routes:
            node = self._root
            for segment in route.path.split("/")[1:]:
                node = node.child(segment)
            if route.method in node.methods:
                raise TypeError(f"{route.name} is there twice")
            node.methods[route.method] = route
            node.rest = route.rest
            if not route.variables:
                self._fixed[route.method, route.path.encode()] = route

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
        """The route for a request and the decoded variables of its path."""
        route = self._fixed.get((method, raw_path))
        if route is not None:
            return route, {}
        values: list[str] = []
        segments = _segments(raw_path)
        node = self._root.find(segments, 0, values)
        if node is None:
            path = raw_path.decode("latin-1")[:200]
            raise NotFound(f"there is nothing at {path}; /docs lists what there is")
        route = node.methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = sorted(node.methods)
            raise MethodNotAllowed(
                f"{method[:16]} is not served here; use {' or '.join(allowed)}", allowed
            )
        if values and route.method != "GET" and raw_path.endswith(b"/"):
            raise Malformed(
                f"a path to {route.method} must not end in a slash: that is what is left of a path "
                "with a name that is . or .., and it is of another thing; leave the slash out"
            )
        return route, dict(zip(route.variables, values, strict=True))


def _segments(raw_path: bytes) -> list[str]:
    """The decoded segments of a path; a slash at its end does not count."""
    parts = raw_path.split(b"/")[1:]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    try:
        return [(unquote_to_bytes(part) if b"%" in part else part).decode() for part in parts]
    except UnicodeDecodeError:
        raise Malformed("the path is not UTF-8 once decoded; encode it as UTF-8") from None

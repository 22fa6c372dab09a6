"""Routes, and the tree that finds the route of a request.

A path is cut into segments before it is decoded: a dataset named `a/b` is one segment, `a%2Fb`.
No name is `.` or `..`: a proxy may have turned such a path into the path of something else.
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
_ARGUMENTS = frozenset({"key", "now", "query", "body", "content", "stream"})


class HandlerKind(Enum):
    """Where a handler runs, and what it gets as its first argument."""

    READ = "in a reader thread, with a transaction"
    ASYNC = "in the event loop, with a RequestContext"
    UPLOAD = "in the event loop, with a RequestContext and the body as a stream"
    INGEST = "in an ingest thread, with an IngestRequest"


READ, ASYNC, UPLOAD, INGEST = HandlerKind


class Reach(Enum):
    """The namespaces that a request touches, which limits keys of one namespace."""

    NAMESPACE = "the namespace in the path"
    OWN = "the namespaces that the key may see; the handler narrows them"
    SHARED = "things that all namespaces share"
    EVERYTHING = "several namespaces at once"


@dataclass(frozen=True, eq=False)
class Route:
    """One method of one path, and the function that serves it.

    After the first argument, which `kind` decides, the function takes any of `key`, `now`, `query`,
    `body` (parsed), `content` (bytes), `stream` and the variables of the path, by name. The OpenAPI
    document uses its annotations and its docstring, and `accepts`, `media` and `also` (another
    status of success). With `rest`, the last variable takes all that is left of the path: some
    clients send a name with its slashes as they are.
    """

    kind: HandlerKind
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
        unknown = self.needs - _ARGUMENTS - set(self.variables)
        missing = set(self.variables) - self.needs
        if unknown or missing:
            raise TypeError(f"{self.name}: parameters {unknown or missing} do not fit the path")
        if self.reach is Reach.NAMESPACE and "namespace" not in self.variables:
            raise TypeError(f"{self.name}: the path has no namespace to check")
        if ("stream" in self.needs) != (self.kind is UPLOAD):
            raise TypeError(f"{self.name}: UPLOAD handlers, and no others, take a stream")

    @property
    def name(self) -> str:
        """The method and the path."""
        return f"{self.method} {self.path}"

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables of the path, in order."""
        return tuple(_VARIABLE.findall(self.path))

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The types of the function's parameters and of its result."""
        return get_type_hints(self.handler, include_extras=True)

    @cached_property
    def needs(self) -> frozenset[str]:
        """The names of the function's parameters after the first."""
        return frozenset([*inspect.signature(self.handler).parameters][1:])


class Node:
    """A node of the tree of paths."""

    __slots__ = ("children", "methods", "rest", "variable")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.variable: Node | None = None
        self.rest = False
        self.methods: dict[str, Route] = {}

    def child(self, segment: str) -> "Node":
        """Return the node one segment further; make it if it is missing."""
        if not _VARIABLE.fullmatch(segment):
            return self.children.setdefault(segment, Node())
        if self.variable is None:
            self.variable = Node()
        return self.variable

    def find(self, segments: list[str], at: int, values: list[str]) -> "Node | None":
        """Return the node at the end of the segments; collect variables on the way."""
        if self.rest:
            values[-1] = "/".join(segments[at - 1 :])
            return self
        if at == len(segments):
            return self if self.methods else None
        fixed = self.children.get(segments[at])
        node = fixed.find(segments, at + 1, values) if fixed else None
        if node or self.variable is None or not segments[at]:
            return node
        values.append(segments[at])
        node = self.variable.find(segments, at + 1, values)
        if node is None:
            values.pop()
        return node


@dataclass
class Router:
    """All routes, in a tree of path segments."""

    routes: Iterable[Route]
    _root: Node = field(default_factory=Node, init=False)
    _fixed: dict[tuple[str, bytes], Route] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for route in self.routes:
            node = self._root
            for segment in route.path.split("/")[1:]:
                node = node.child(segment)
            if route.method in node.methods:
                raise TypeError(f"{route.name} is declared twice")
            node.methods[route.method] = route
            node.rest = route.rest
            if not route.variables:
                self._fixed[route.method, route.path.encode()] = route

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
        """Return the route of a request and the decoded variables of its path."""
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
    """Return the decoded segments of a path; a slash at the end does not count."""
    parts = raw_path.split(b"/")[1:]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    try:
        return [(unquote_to_bytes(part) if b"%" in part else part).decode() for part in parts]
    except UnicodeDecodeError:
        raise Malformed("the path is not UTF-8 once decoded; encode it as UTF-8") from None

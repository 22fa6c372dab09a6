"""The ASGI application: finds the route, checks the caller, runs the handler, answers."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter
from typing import Any, NamedTuple

from penstock.access.caller import Proxies, called_from
from penstock.access.keys import LOCAL, Key
from penstock.access.wrong_keys import WrongKeys
from penstock.catalog.events.child_jobs import find_child
from penstock.catalog.events.parse import Limits, check_name
from penstock.errors import NotFound
from penstock.plane import Plane
from penstock.server import openapi
from penstock.server import openapi as docs
from penstock.server.auth import Gate, Heading, Sender, check_host, heading, is_loopback, sender_of
from penstock.server.content import (
    PARSE_INLINE_BYTES_MAX,
    UNPACK_INLINE_BYTES_MAX,
    Disconnected,
    Share,
    Stream,
    body_reader,
    query_reader,
    read_content,
    unpack,
)
from penstock.server.errors import UNEXPECTED, refusal
from penstock.server.metrics import Metrics
from penstock.server.requests import IngestRequest, RequestContext, ServerState
from penstock.server.responses import (
    Answer,
    Flow,
    PlainAnswer,
    Receive,
    Scope,
    Send,
    answer,
    messages,
    pour,
)
from penstock.server.routes.table import CAPABILITIES, ROUTES
from penstock.server.routing import INGEST, READ, UPLOAD, Reach, Route, Router
from penstock.telemetry import logs, tracing

# If a refused body is smaller, its rest is read and dropped, and the connection stays open.
_DROP_BYTES_MAX = 64 * 1024
_UNMATCHED = "unmatched"
_HANG_UP = (b"connection", b"close")
# These are too many for a log line each; the metrics count them.
_BUSY = 429

_log = logging.getLogger(__name__)


class _Surface(NamedTuple):
    """The router and the decoders of all routes, made once."""

    router: Router
    queries: dict[Route, Callable[[bytes], Any]]
    bodies: dict[Route, Callable[[bytes, int], Any]]


@cache
def _surface() -> _Surface:
    return _Surface(
        router=Router(ROUTES),
        queries={r: query_reader(r.hints["query"]) for r in ROUTES if "query" in r.needs},
        bodies={r: body_reader(r.hints["body"]) for r in ROUTES if "body" in r.needs},
    )


@cache
def _openapi() -> bytes:
    return openapi.text(openapi.document(CAPABILITIES))


@cache
def _docs() -> PlainAnswer:
    return docs.page(openapi.document(CAPABILITIES))


@dataclass(slots=True)
class _Progress:
    """The facts about a request that its log line needs, and its share of the budget."""

    share: Share
    key: str = ""
    caller: str = ""
    has_unread_body: bool = False


class Api:
    """The whole HTTP API over one plane, as an ASGI application."""

    def __init__(self, plane: Plane, metrics: Metrics) -> None:
        self._surface = _surface()
        settings = plane.settings
        self._wrong_keys = WrongKeys(plane.database, clock=plane.clock)
        self.state = ServerState(
            plane,
            Gate(
                plane.keys,
                self._wrong_keys,
                is_required=settings.auth == "required",
                local_only=is_loopback(settings.host),
                hosts=settings.hosts,
                proxies=Proxies(settings.proxies),
            ),
            metrics,
            Limits(settings.name_length_max, settings.json_depth_max),
            _openapi,
            _docs,
        )
        # A larger body would never fit into the budget, and its client would retry for ever.
        self._bytes_max = min(plane.settings.body_bytes_max, plane.settings.bodies_bytes_max)
        metrics.watch_queue(lambda: plane.catalog.queue_length)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(f"only HTTP is served here, not {scope['type']}")
        started = perf_counter()
        method: str = scope["method"]
        template = _UNMATCHED
        progress = _Progress(Share(self.state.budget))
        response: Answer | Flow
        try:
            head = heading(scope["headers"])
            sender = sender_of(scope, head, self.state.gate.proxies)
            progress.caller = sender.caller
            check_host(scope)
            route, names = self._surface.router.find(method, scope["raw_path"])
            template = route.path
            with called_from(sender.caller):
                response = await self._serve(route, names, scope, receive, head, sender, progress)
        except Disconnected:
            return
        except Exception as error:
            with logs.about(route=f"{method} {template}", key=progress.key, client=progress.caller):
                refused = response = refusal(error)
                _tell(refused.status, error, is_known=template is not _UNMATCHED)
            if progress.has_unread_body:
                # The client should stop sending a body that is not read.
                response = refused._replace(headers=(*refused.headers, _HANG_UP))
        finally:
            progress.share.release()
        if isinstance(response, Flow):
            self.state.metrics.answered(method, template, 200, perf_counter() - started)
            await pour(response, method, receive, send)
            return
        start, body = messages(response)
        try:
            await send(start)
            await send(body)
        except RuntimeError:  # the caller hung up; its write is committed all the same
            return
        # A caller can invent methods and paths without end, so they must not become labels.
        shown = method if template is not _UNMATCHED else _UNMATCHED
        self.state.metrics.answered(shown, template, response.status, perf_counter() - started)

    def close(self) -> None:
        """End all threads, and report the keys that were refused."""
        self.state.close()
        self._wrong_keys.close()

    async def _serve(
        self,
        route: Route,
        names: dict[str, str],
        scope: Scope,
        receive: Receive,
        head: Heading,
        sender: Sender,
        progress: _Progress,
    ) -> Answer | Flow:
        """Authenticate the caller, check its rights and run the handler."""
        progress.has_unread_body = head.is_chunked or head.body_bytes > _DROP_BYTES_MAX
        key = await self._admit(route, names, head, sender)
        progress.key = key.name
        self.state.rates.count_request(key)
        if head.traceparent is None or not tracing.is_on():
            return await self._handle(route, names, scope, receive, head, sender, key, progress)
        with tracing.called_by(head.traceparent.decode("latin-1")):
            return await self._handle(route, names, scope, receive, head, sender, key, progress)

    async def _handle(
        self,
        route: Route,
        names: dict[str, str],
        scope: Scope,
        receive: Receive,
        head: Heading,
        sender: Sender,
        key: Key,
        progress: "_Progress",
    ) -> Answer | Flow:
        """Collect what the handler needs, and run it."""
        for what, name in names.items():
            check_name(name, what, self.state.limits.name_length_max)
        needs = route.needs
        arguments: dict[str, Any] = {**names}
        if "key" in needs:
            arguments["key"] = key
        if "now" in needs:
            arguments["now"] = self.state.plane.clock()
        if "query" in needs:
            arguments["query"] = self._surface.queries[route](scope["query_string"])
        if route.kind is UPLOAD:
            bytes_max = self.state.plane.settings.payload_bytes_max
            count = partial(self.state.rates.count_bytes, key)
            arguments["stream"] = Stream(receive, head, bytes_max, count)
        elif "content" in needs:
            arguments["content"] = await self._content(head, receive, key, progress)
        elif "body" in needs:
            content = await self._content(head, receive, key, progress)
            parse, depth_max = self._surface.bodies[route], self.state.limits.json_depth_max
            if len(content) > PARSE_INLINE_BYTES_MAX:
                arguments["body"] = await self.state.parse(parse, content, depth_max)
            else:
                arguments["body"] = parse(content, depth_max)
        try:
            return await self._run(route, arguments, head, sender, key)
        except NotFound:
            child = None if route.kind is UPLOAD else await self._child_job(names)
            if child is None:
                raise
        return await self._run(route, {**arguments, "job": child}, head, sender, key)

    async def _child_job(self, names: dict[str, str]) -> str | None:
        """Return the child job that a path names as Marquez does, PARENT.CHILD."""
        if "job" not in names or "." not in names["job"]:
            return None

        def find(namespace: str, job: str) -> str | None:
            with self.state.plane.catalog.read() as tx:
                child = find_child(tx, namespace, job)
            return child.name if child is not None else None

        return await self.state.in_thread(find, names["namespace"], names["job"])

    async def _run(
        self, route: Route, arguments: dict[str, Any], head: Heading, sender: Sender, key: Key
    ) -> Answer | Flow:
        """Run the handler as its route says, and encode its result."""
        if route.kind is READ:
            return await self.state.in_thread(self._read, route, arguments)
        if route.kind is INGEST:
            return await self.state.in_ingest_thread(self._serve_ingest, route, key, arguments)
        context = RequestContext(self.state, key, head, sender)
        value = await route.handler(context, **arguments)
        if isinstance(value, Flow):
            return value
        return answer(value, route.status, tuple(context.headers))

    def _read(self, route: Route, arguments: dict[str, Any]) -> Answer:
        with self.state.plane.catalog.read() as tx:
            value = route.handler(tx, **arguments)
        return answer(value, route.status)

    def _serve_ingest(self, route: Route, key: Key, arguments: dict[str, Any]) -> Answer:
        request = IngestRequest(self.state, key)
        value = route.handler(request, **arguments)
        return answer(value, request.status or route.status)

    async def _admit(
        self, route: Route, names: dict[str, str], head: Heading, sender: Sender
    ) -> Key:
        """Return the caller's key if it may make this call."""
        if route.role is None:
            return LOCAL
        gate = self.state.gate
        key = gate.at_once(route.method, head, sender)
        if key is None:
            key = await self.state.in_thread(gate.ask, route.method, head, sender)
        key.require_role(route.role)
        if route.reach is Reach.NAMESPACE:
            key.require_namespace(names["namespace"])
        elif route.reach is Reach.EVERYTHING:
            key.require_every_namespace()
        return key

    async def _content(
        self, head: Heading, receive: Receive, key: Key, progress: "_Progress"
    ) -> bytes:
        """Read and unpack the body; it counts in the budget until the request is answered."""
        share, bytes_max = progress.share, self._bytes_max
        content = await read_content(receive, head.length, bytes_max, share)
        progress.has_unread_body = False
        if head.encoding is not None:
            if len(content) > UNPACK_INLINE_BYTES_MAX:
                unpacking = self.state.parse(unpack, content, head.encoding, bytes_max, share)
                content = await unpacking
            else:
                content = unpack(content, head.encoding, bytes_max, share)
        self.state.rates.count_bytes(key, len(content))
        return content


def _tell(status: int, error: Exception, *, is_known: bool) -> None:
    """Log a refusal; an unexpected error was logged already."""
    if status == UNEXPECTED:
        return
    level = logging.WARNING if status > UNEXPECTED else logging.INFO
    if status == _BUSY or not is_known:
        level = logging.DEBUG
    with logs.about(status=str(status)):
        _log.log(level, "refused: %s", error)

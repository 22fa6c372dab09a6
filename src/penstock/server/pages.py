"""The web page at `/`: its files, and the page itself for each of its addresses."""

from collections.abc import Mapping
from importlib import resources

from penstock.server.auth import count_hosts
from penstock.server.responses import Answer, App, Header, Receive, Scope, Send, messages
from penstock.web.files import Files, PageFile

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; worker-src 'self'; font-src 'self'; manifest-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_HTML = b"text/html"
_READING = ("GET", "HEAD")


class Site:
    """An application that serves the API, and the web page for all other paths.

    The page has addresses of its own, such as `/datasets/…`. A request for HTML gets the page
    there; any other request goes to the API, which answers 404.
    """

    def __init__(self, api: App, taken: frozenset[str], files: Files) -> None:
        self._api = api
        self._taken = taken
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._answer(scope)
        if response is None:
            await self._api(scope, receive, send)
            return
        start, body = messages(response, guards=())
        if scope["method"] == "HEAD":
            body["body"] = b""
        await send(start)
        await send(body)

    def _answer(self, scope: Scope) -> Answer | None:
        """Return the page or one of its files; None if the API must answer."""
        if scope["type"] != "http" or scope["method"] not in _READING:
            return None
        path: str = scope["path"].removeprefix("/")
        if path.partition("/")[0] in self._taken or count_hosts(scope) != 1:
            return None  # the API answers, and refuses a request without a Host header or with two
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        file = self._files.find(path)
        if file is None and (not path or _HTML in headers.get(b"accept", b"")):
            file = self._files.find("")
            if file is None:
                return _not_built()
        return None if file is None else _sent(file, headers)


def _sent(file: PageFile, headers: Mapping[bytes, bytes]) -> Answer:
    etag = file.etag.encode()
    about: tuple[Header, ...] = (
        (b"etag", etag),
        (b"cache-control", file.caching.encode()),
        (b"vary", b"accept-encoding"),
        *_SAFE,
    )
    content_type = file.content_type.encode()
    if etag in headers.get(b"if-none-match", b""):
        return Answer(304, b"", content_type, about)
    if file.is_packed and b"gzip" in headers.get(b"accept-encoding", b""):
        return Answer(200, file.kept, content_type, (*about, (b"content-encoding", b"gzip")))
    return Answer(200, file.plain, content_type, about)


def _not_built() -> Answer:
    page = resources.files("penstock.web").joinpath("missing.html").read_bytes()
    about = ((b"cache-control", b"no-store"), *_SAFE)
    return Answer(503, page, b"text/html; charset=utf-8", about)

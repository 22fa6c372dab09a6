"""Bodies and query parameters: how they are read, unpacked and checked."""

import asyncio
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from gzip import GzipFile
from io import BytesIO
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct, inspect

from penstock.catalog.events.parse import check_depth, check_numbers, why_not_json
from penstock.clock import Micros, parse_time
from penstock.errors import Busy, Invalid, Malformed, PenstockError, TooLarge
from penstock.server.auth import Heading
from penstock.server.responses import Receive


class Body(Struct, frozen=True, rename="camel"):
    """A request body. Unknown fields are ignored."""


class OwnBody(Body, frozen=True, forbid_unknown_fields=True):
    """A request body of Penstock's own endpoints. Unknown fields are refused.

    Otherwise a mistyped field would have no effect, and the request would do something else.
    """


class Budget:
    """The bytes that all requests may hold together. Used by several threads."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """The number of bytes that are held now."""
        return self._held

    def take(self, size: int) -> None:
        """Hold some bytes, or raise Busy."""
        with self._lock:
            if self._held + size > self.bytes_max:
                raise Busy(
                    f"the server holds {self._held} bytes of other requests, and at most "
                    f"{self.bytes_max} in all; send this again in a second"
                )
            self._held += size

    def give_back(self, size: int) -> None:
        """Release some bytes."""
        with self._lock:
            self._held -= size


class Share:
    """The share of one request in the budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.size = 0

    def grow(self, size: int) -> None:
        """Hold more bytes, or raise Busy."""
        self._budget.take(size)
        self.size += size

    def shrink(self, size: int) -> None:
        """Hold fewer bytes."""
        self._budget.give_back(size)
        self.size -= size

    def release(self) -> None:
        """Release all bytes."""
        if self.size:
            self.shrink(self.size)


T = TypeVar("T")

# A larger body is unpacked and parsed in a thread, so that it does not block other requests.
UNPACK_INLINE_BYTES_MAX = 16 * 1024
PARSE_INLINE_BYTES_MAX = 128 * 1024

# A JSON escape of NUL, not one behind an escaped backslash. PostgreSQL cannot store it.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
NO_SUCH_CHOICE = "Invalid enum value "  # the start of msgspec's message
_NAME, _PLACE = re.compile(r"\.(\w+)"), re.compile(r"\[[^]]*\]")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_CHOICES_MAX = 100  # how many choices of one body may be spelled in another case
_GZIP = zlib.MAX_WBITS | 16
_PIECE_BYTES = 1024 * 1024


class Disconnected(Exception):
    """The caller hung up before its request was complete. No answer is needed."""


async def read_content(
    receive: Receive, length: bytes | None, bytes_max: int, share: Share
) -> bytes:
    """Read the whole body as it was sent, within the limit and the server's budget."""
    if length is not None and length.isdigit() and int(length) > bytes_max:
        raise _too_large(bytes_max)
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        parts.append(message.get("body", b""))
        if share.size + len(parts[-1]) > bytes_max:
            raise _too_large(bytes_max)
        share.grow(len(parts[-1]))
        more = message.get("more_body", False)
    return b"".join(parts)


def unpack(content: bytes, encoding: bytes, bytes_max: int, share: Share) -> bytes:
    """Unpack a body piece by piece, within the limit and the server's budget."""
    name = encoding.strip().lower()
    if name == b"identity":
        return content
    if name not in (b"gzip", b"x-gzip"):
        raise Malformed(
            f"content-encoding {name.decode('latin-1')[:32]!r} is not known here; "
            "send gzip, or no encoding"
        )
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in _gunzip(content):
            size += len(piece)
            if size > bytes_max:
                raise _too_large(bytes_max)
            share.grow(len(piece))
            pieces.append(piece)
    except EOFError:
        raise Malformed("the gzip body ends too early; send it again") from None
    except (zlib.error, OSError) as error:
        raise Malformed(f"the body is not gzip as its content-encoding says: {error}") from None
    share.shrink(len(content))
    return b"".join(pieces)


def _gunzip(content: bytes) -> Iterator[bytes]:
    """Unpack gzip, also of several members, as programs write it that pack in parallel."""
    unpacker = zlib.decompressobj(wbits=_GZIP)
    piece = unpacker.decompress(content, _PIECE_BYTES)
    if unpacker.eof and not unpacker.unused_data:  # most bodies: small, and one member
        yield piece
        return
    with GzipFile(fileobj=BytesIO(content)) as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def body_reader(shape: type[T]) -> Callable[[bytes, int], T]:
    """Return a function that decodes JSON of a type; its second argument limits the nesting."""
    decode = msgspec.json.Decoder(shape).decode

    def read(content: bytes, depth_max: int) -> T:
        content = content or b"{}"
        check_depth(content, depth_max)
        try:
            value = decode(content)
            if not content.isascii():
                content.decode()  # values of type Raw or Any were not checked
        except msgspec.ValidationError as error:
            value = _in_any_case(content, shape, decode, error)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(f"the body is not JSON: {why_not_json(error, content)}") from None
        check_numbers(content)
        if _NUL.search(content):
            raise Invalid("the body holds a NUL character (\\u0000), which cannot be kept")
        return value

    return read


def _in_any_case(
    content: bytes, shape: type[T], decode: Callable[[bytes], T], error: msgspec.ValidationError
) -> T:
    """Decode a body again with the spelling of each choice corrected, or refuse it.

    Called only for a body that failed to decode: one pass for each misspelled choice.
    """
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        # The first error hid one that comes later in the text, such as bytes after the JSON.
        raise Malformed(f"the body is not JSON: {why_not_json(cause, content)}") from None
    for _ in range(_CHOICES_MAX):
        what, _, where = str(error).partition(" - at `$")
        where = where.rstrip("`")
        steps = [int(at) if at else name for name, at in _STEP.findall(where)]
        is_choice = what.startswith(NO_SUCH_CHOICE) and "..." not in where
        if not is_choice or not _respell(document, steps, shape, where):
            break
        try:
            return decode(msgspec.json.encode(document))
        except msgspec.ValidationError as next_error:
            error = next_error
    raise Invalid(f"the body does not fit: {explained(error, shape)}") from None


def _respell(document: Any, steps: list[str | int], shape: type[Any], where: str) -> bool:
    """Correct the case of the choice at a path of a document; return False if none fits."""
    for step in steps[:-1]:
        document = document[step]
    held = document[steps[-1]] if steps else None
    if not isinstance(held, str):
        return False
    fitting = _spellings(inspect.type_info(shape), where).get(held.casefold())
    if fitting in (None, held):
        return False
    document[steps[-1]] = fitting
    return True


def spellings(shape: type[Any], name: str) -> dict[str, str]:
    """Return the choices of a field or its list, by their lower-case spelling."""
    info = inspect.type_info(shape)
    return {**_spellings(info, f".{name}"), **_spellings(info, f".{name}[0]")}


def _spellings(info: inspect.Type, where: str) -> dict[str, str]:
    return {text.casefold(): text for text in _choices(info, where)}


def explained(error: msgspec.ValidationError, shape: type[Any]) -> str:
    """Return an error with its field and, for a choice, the valid values."""
    what, _, where = str(error).partition(" - at `$")
    if what.startswith(NO_SUCH_CHOICE):
        choices = ", ".join(sorted(_choices(inspect.type_info(shape), where)))
        what = f"{what.removeprefix(NO_SUCH_CHOICE)} is none of {choices}"
    return f"{where.removeprefix('.').rstrip('`')}: {what}" if where else what


def _choices(shape: inspect.Type, where: str) -> Iterator[str]:
    """Return the choices of a field such as `.fields[0].type`."""
    match shape:
        case inspect.UnionType(types=types):
            for each in types:
                yield from _choices(each, where)
        case inspect.Metadata(type=inner):
            yield from _choices(inner, where)
        case inspect.EnumType(cls=choices):
            yield from (str(choice.value) for choice in choices)
        case inspect.LiteralType(values=values):
            yield from map(str, values)
        case inspect.StructType(fields=fields) if step := _NAME.match(where):
            for field in fields:
                if field.encode_name == step[1]:
                    yield from _choices(field.type, where[step.end() :])
        case inspect.DictType(value_type=inner) if step := _PLACE.match(where):
            yield from _choices(inner, where[step.end() :])
        case inspect.CollectionType(item_type=inner) if step := _PLACE.match(where):
            yield from _choices(inner, where[step.end() :])


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"the body is larger than {bytes_max} bytes; send less at a time")


def json_text(value: Any) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()


class Stream:
    """A body that a thread reads piece by piece while it arrives; memory holds one piece.

    A body that is over the limit or breaks off raises in that thread; `failure` is why, for
    callers whose own work hides it. `count` gets the size of each piece.
    """

    def __init__(
        self, receive: Receive, head: Heading, bytes_max: int, count: Callable[[int], None]
    ) -> None:
        _check_encoding(head.encoding)
        self.failure: PenstockError | Disconnected | None = None
        self.length = int(head.length) if head.length and head.length.isdigit() else None
        self._receive = receive
        self._bytes_max = bytes_max
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._is_whole = False
        self._is_closed = False
        if self.length is not None and self.length > bytes_max:
            raise _upload_too_large(bytes_max)

    def __iter__(self) -> Iterator[bytes]:
        taken = 0
        while not self._is_whole:
            piece = self._wait_for_piece()
            taken += len(piece)
            if taken > self._bytes_max:
                self.failure = _upload_too_large(self._bytes_max)
                raise self.failure
            if piece:
                yield piece

    def close(self) -> None:
        """End the wait of a thread for another piece."""
        self._is_closed = True

    def _wait_for_piece(self) -> bytes:
        if self._is_closed:
            self.failure = Disconnected()
            raise self.failure
        try:
            return asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
        except (PenstockError, Disconnected) as failure:
            self.failure = failure
            raise

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._is_whole = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        self._count(len(piece))
        return piece


def _check_encoding(encoding: bytes | None) -> None:
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise Malformed(
            f"content-encoding {encoding.decode('latin-1')[:32]!r} cannot be undone here; "
            "send the bytes as they shall be kept"
        )


def _upload_too_large(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"the payload is larger than {bytes_max} bytes; send less at a time, or raise the "
        "server's payload_bytes_max"
    )


Q = TypeVar("Q", bound=Struct)

LIMIT_MAX = 10_000
OFFSET_MAX = 1_000_000_000
DEPTH_MAX = 1_000
_PARAMETERS_MAX = 100

Limit = Annotated[int, Meta(ge=0, le=LIMIT_MAX, description="how many to show at most")]
Offset = Annotated[int, Meta(ge=0, le=OFFSET_MAX, description="how many to leave out first")]
Depth = Annotated[int, Meta(ge=0, le=DEPTH_MAX, description="how many edges away to look")]


class Query(Struct, frozen=True, rename="camel"):
    """The query of a URL. Unknown parameters are ignored."""


class Paging(Query, frozen=True):
    """A page of a list."""

    limit: Limit = 100
    offset: Offset = 0


def query_reader(shape: type[Q]) -> Callable[[bytes], Q]:
    """Return a function that decodes a query string of a type."""
    hints = get_type_hints(shape)
    fields = msgspec.structs.fields(shape)
    repeated = {f.encode_name for f in fields if _is_list(hints[f.name])}
    choices = {f.encode_name: spellings(shape, f.encode_name) for f in fields}

    # msgspec crashes if two threads use a type first at once, so use it here.
    msgspec.json.Decoder(shape)

    def read(text: bytes) -> Q:
        values: dict[str, Any] = {}
        for name, spelling in _pairs(text) if text else ():
            value = choices.get(name, {}).get(spelling.casefold(), spelling)
            if name in repeated:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        try:
            return msgspec.convert(values, shape, strict=False)
        except msgspec.ValidationError as error:
            kind = Invalid if str(error).startswith(NO_SUCH_CHOICE) else Malformed
            raise kind(f"a query parameter does not fit: {explained(error, shape)}") from None

    return read


def _is_list(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_origin(hint) is tuple


def moment(text: str | None, name: str) -> Micros | None:
    """Return the time of a query parameter, or None."""
    if text is None:
        return None
    try:
        return parse_time(text)
    except Invalid as error:
        raise Malformed(f"{name}: {error}") from None


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_PARAMETERS_MAX,
        )
    except ValueError as error:
        raise Malformed(f"the query string cannot be read: {error}") from None
    if any("\x00" in value for _, value in pairs):
        raise Malformed("the query string holds a NUL character; remove it")
    return pairs

"""`penstock emit`: OpenLineage events from a file to the server."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Annotated

import msgspec
from cyclopts import App, Parameter
from msgspec import Raw, Struct
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from penstock.catalog.events.parse import why_not_json
from penstock.cli.options import REMOTE, Json, RemoteFlags
from penstock.cli.output import complain, counted, err, note, write_json, write_line
from penstock.client import ApiError, Client
from penstock.errors import Invalid, Malformed, PenstockError

app = App(
    name="emit",
    help_epilogue="""Examples:
  penstock emit events.ndjson
  zcat events.ndjson.gz | penstock emit -

The file holds one event to a line, or one JSON list of events, or one event.
Each is received or refused alone; refused ones are listed on stderr, and the
exit code is then 1.""",
)

BATCH_EVENTS_MAX = 200
BATCH_BYTES_MAX = 1_000_000
TRIES_MAX = 8


class Numbered(Struct, frozen=True):
    """An event and where it stands: its line, or its place in the list."""

    place: int
    body: bytes


class Refused(Struct, frozen=True):
    """An event that the server did not take."""

    place: int
    reason: str


class Outcome(Struct, frozen=True):
    """What became of a file."""

    sent: int
    refused: tuple[Refused, ...]


@app.default
def emit(
    file: Annotated[str, Parameter(allow_leading_hyphen=True, help="the file; - is stdin")],
    /,
    *,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Send OpenLineage events from a file."""
    console = err()
    progress = Progress(
        SpinnerColumn(),
        TextColumn("sending events"),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    sent = 0
    refused: list[Refused] = []
    try:
        with remote.connect() as client, _opened(file) as stream, progress:
            task = progress.add_task("", total=None)
            for batch in batches(read_events(stream, file)):
                refused += send(client, batch)
                sent += len(batch)
                progress.update(task, completed=sent)
    except (PenstockError, KeyboardInterrupt):
        _tell(file, refused)
        if sent:
            note(
                f"of the first {counted(sent, 'event')}: {sent - len(refused):,} received, "
                f"{len(refused):,} refused; it ended there"
            )
        raise
    outcome = Outcome(sent - len(refused), tuple(refused))
    _tell(file, refused)
    if as_json:
        write_json(outcome)
    else:
        events = "1 event" if outcome.sent == 1 else f"{outcome.sent:,} events"
        write_line(f"{events} received, {len(refused):,} refused")
    return 1 if refused else 0


def _tell(file: str, refused: Iterable[Refused]) -> None:
    for each in refused:
        complain(f"{file}: event {each.place} was refused: {each.reason}")


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as open_files:
        try:
            stream = open_files.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise Invalid(f"{file} cannot be read: {error.strerror}; name another file") from None
        yield stream


def read_events(stream: IO[bytes], name: str) -> Iterator[Numbered]:
    """The events of a file: one to a line, a list of them, or a single one."""
    first = stream.readline()
    while first and not first.strip():
        first = stream.readline()
    try:
        alone = msgspec.json.decode(first, type=Raw) if first else Raw(b"[]")
    except msgspec.DecodeError:
        yield from _of_document(first + stream.read(), name)
        return
    if bytes(alone).lstrip().startswith(b"["):
        yield from _of_document(first + stream.read(), name)
        return
    yield Numbered(1, bytes(alone))
    for number, line in enumerate(stream, 2):
        if line.strip():
            yield Numbered(number, _checked(line, f"{name}, line {number}"))


def _of_document(content: bytes, name: str) -> Iterator[Numbered]:
    try:
        found = msgspec.json.decode(content or b"[]", type=list[Raw])
    except msgspec.ValidationError:
        found = [Raw(_checked(content, name))]
    except msgspec.DecodeError as error:
        why = why_not_json(error, content)
        raise Malformed(f"{name} is not JSON: {why}; write one event to a line") from None
    for number, event in enumerate(found, 1):
        yield Numbered(number, bytes(event))


def _checked(text: bytes, where: str) -> bytes:
    try:
        return bytes(msgspec.json.decode(text, type=Raw))
    except msgspec.DecodeError as error:
        why = why_not_json(error, text)
        raise Malformed(f"{where} is not JSON: {why}; write one event to a line") from None


def batches(events: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Events in lots that are quick to send."""
    batch: list[Numbered] = []
    held = 0
    for event in events:
        if batch and (len(batch) >= BATCH_EVENTS_MAX or held + len(event.body) > BATCH_BYTES_MAX):
            yield batch
            batch, held = [], 0
        batch.append(event)
        held += len(event.body)
    if batch:
        yield batch


def send(client: Client, batch: list[Numbered]) -> list[Refused]:
    """Send a batch, again and again while that may help, and say what was refused."""
    refused: list[Refused] = []
    for attempt in range(1, TRIES_MAX + 1):
        try:
            failed = client.emit_batch([event.body for event in batch]).failed_events
        except ApiError as error:
            if error.code not in (429, 503) or attempt == TRIES_MAX:
                raise
            time.sleep(error.retry_after_seconds or 1)
            continue
        again = [failure.index for failure in failed if failure.retriable]
        final = [f for f in failed if not f.retriable or attempt == TRIES_MAX]
        refused += [Refused(batch[f.index].place, f.reason) for f in final]
        batch = [batch[index] for index in again]
        if not batch or attempt == TRIES_MAX:
            break
        time.sleep(min(attempt, 5) / 5)
    return refused

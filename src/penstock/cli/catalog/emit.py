"""`penstock emit`."""

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
from penstock.cli import exit_codes
from penstock.cli.options import OPTIONS, Options
from penstock.cli.output import complain, counted, err, note
from penstock.client import ApiError, Client
from penstock.errors import Invalid, Malformed, PenstockError

app = App(
    name="emit",
    help_epilogue="""Examples:
  penstock emit events.ndjson
  zcat events.ndjson.gz | penstock emit -

The file contains one event per line, one JSON list of events, or one event. The
server receives or refuses each event separately. Refused events are listed on
stderr, and the exit code is then 1.""",
)

BATCH_EVENTS_MAX = 200
BATCH_BYTES_MAX = 1_000_000
TRIES_MAX = 8


class Numbered(Struct, frozen=True):
    """An event and its place: its line, or its position in the list."""

    place: int
    body: bytes


class Refused(Struct, frozen=True):
    """An event that the server refused."""

    place: int
    reason: str


class EmitOutcome(Struct, frozen=True):
    """The result of sending a file."""

    sent: int
    refused: tuple[Refused, ...]


@app.default
def emit(
    file: Annotated[str, Parameter(allow_leading_hyphen=True, help="the file; - is stdin")],
    /,
    *,
    options: Options = OPTIONS,
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
        with options.connect() as client, _opened(file) as stream, progress:
            task = progress.add_task("", total=None)
            for batch in batches(read_events(stream, file)):
                refused += send(client, batch)
                sent += len(batch)
                progress.update(task, completed=sent)
    except (PenstockError, KeyboardInterrupt):
        _complain(file, refused)
        if sent:
            note(
                f"of the first {counted(sent, 'event')}: {sent - len(refused):,} received, "
                f"{len(refused):,} refused; then sending stopped"
            )
        raise
    outcome = EmitOutcome(sent - len(refused), tuple(refused))
    _complain(file, refused)
    options.write_line(
        outcome, f"{counted(outcome.sent, 'event')} received, {len(refused):,} refused"
    )
    return exit_codes.FAILED if refused else exit_codes.DONE


def _complain(file: str, refused: Iterable[Refused]) -> None:
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
    """Read the events of a file: one per line, a list, or a single one."""
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
            yield Numbered(number, _check(line, f"{name}, line {number}"))


def _of_document(content: bytes, name: str) -> Iterator[Numbered]:
    try:
        events = msgspec.json.decode(content or b"[]", type=list[Raw])
    except msgspec.ValidationError:
        events = [Raw(_check(content, name))]
    except msgspec.DecodeError as error:
        reason = why_not_json(error, content)
        raise Malformed(f"{name} is not JSON: {reason}; write one event per line") from None
    for number, event in enumerate(events, 1):
        yield Numbered(number, bytes(event))


def _check(text: bytes, where: str) -> bytes:
    try:
        return bytes(msgspec.json.decode(text, type=Raw))
    except msgspec.DecodeError as error:
        reason = why_not_json(error, text)
        raise Malformed(f"{where} is not JSON: {reason}; write one event per line") from None


def batches(events: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Divide events into batches of limited size."""
    batch: list[Numbered] = []
    size = 0
    for event in events:
        if batch and (len(batch) >= BATCH_EVENTS_MAX or size + len(event.body) > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += len(event.body)
    if batch:
        yield batch


def send(client: Client, batch: list[Numbered]) -> list[Refused]:
    """Send a batch, retry what can be retried, and return the refused events."""
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

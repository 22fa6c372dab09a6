"""Log lines on stderr, for people or machines, each with the ids of its subject.

Work on a thing runs inside `about`. Every line logged meanwhile in the same thread has the ids.
"""

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import NamedTuple

from penstock.config import Settings

_NO_IDS: Mapping[str, str] = {}
_ids: ContextVar[Mapping[str, str]] = ContextVar("about", default=_NO_IDS)
_PLAIN = re.compile(r"[^\s\"\[\]=\x00-\x1f\x7f]+")
# Line ends, cursor movements and text direction: callers send them to forge lines. A lone surrogate
# cannot be written at all.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


# These loggers write a line for each request, or repeat our lines.
_QUIET = ("distributed", "httpcore", "httpx", "urllib3", "uvicorn")


class Form(NamedTuple):
    """The form of log lines; child processes get it from their parent."""

    style: str
    level: str


_form: Form | None = None


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add these ids to each line logged in the block; empty ones are left out.

    Names: run, job (as namespace/name), dataset (likewise), lot, batch, ingest_job, arc, part, and
    others that help to find a line.
    """
    token = _ids.set({**_ids.get(), **{name: text for name, text in ids.items() if text}})
    try:
        yield
    finally:
        _ids.reset(token)


class Trouble:
    """A problem that recurs on each try, perhaps for hours.

    It is logged once until it ends. A dependency may fail in alternating ways, so each is
    remembered.
    """

    def __init__(self, log: logging.Logger, words: str) -> None:
        self._log = log
        self._words = words
        self._told: set[str] = set()
        self._telling = threading.Lock()

    def met(self, error: object) -> None:
        """Log the problem, unless it was logged before."""
        text = str(error)
        with self._telling:
            level = logging.DEBUG if text in self._told else logging.WARNING
            self._told.add(text)
        self._log.log(level, "%s: %s", self._words, text)

    def over(self) -> None:
        """Mark the end of the problem; the next one is logged."""
        self._told.clear()


class TextLines(logging.Formatter):
    """One line for people, with the ids at its end; continuation lines are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line, followed by its traceback."""
        line = f"{self.formatTime(record)} {record.levelname} {record.getMessage()}"
        ids = _ids.get()
        if ids:
            line = f"{line} [{' '.join(f'{name}={_word(text)}' for name, text in ids.items())}]"
        lines = [escape_controls(line)]
        if record.exc_info:
            lines.append(_indented(self.formatException(record.exc_info)))
        if record.stack_info:
            lines.append(_indented(self.formatStack(record.stack_info)))
        return "\n".join(lines)


class JsonLines(logging.Formatter):
    """One JSON object per line, with the ids as fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON; a traceback is a field."""
        line = {
            **_ids.get(),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return escape_controls(json.dumps(line, ensure_ascii=False))


def escape_controls(text: str) -> str:
    """Escape control characters as in JSON: `\\u000a` for the end of a line."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _indented(text: str) -> str:
    return "\n".join(f"  {escape_controls(line)}" for line in text.split("\n"))


def set_up_logs(settings: Settings) -> None:
    """Send all log records to stderr in the configured form."""
    write_as(Form(settings.log_format, settings.log_level))


def write_as(form: Form) -> None:
    """Send all log records to stderr in this form."""
    global _form  # noqa: PLW0603 (there is one stderr)
    _form = form
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form.style == "json" else TextLines())
    logging.basicConfig(level=form.level.upper(), handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    # kazoo logs several lines for each attempt to connect; our session logs one.
    logging.getLogger("kazoo").setLevel(logging.ERROR)


def current_form() -> Form | None:
    """Return the form of this process's lines, or None before any setup."""
    return _form


def _word(text: str) -> str:
    """Return a value, quoted if its end would be unclear."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)

"""Log lines on stderr, for people or for machines, each with the ids of what it is about.

Whoever works on something says so once, with `about`; every line that is logged meanwhile in the
same thread carries the ids, whoever logs it.
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
# Line ends and what moves the cursor of a terminal or turns the text around: callers send them to
# forge lines. Half of a surrogate pair cannot be written at all.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


# They would write a line for each request, or say less than ours do.
_QUIET = ("distributed", "httpcore", "httpx", "urllib3", "uvicorn")


class Form(NamedTuple):
    """How log lines are written; what a process of ours tells those that it starts."""

    style: str
    level: str


_form: Form | None = None


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Have each line that is logged here meanwhile carry these ids; an empty one is left out.

    Their names: run, job (as namespace/name), dataset (likewise), lot, batch, ingest_job, arc,
    part, and whatever else helps to find a line.
    """
    token = _ids.set({**_ids.get(), **{name: text for name, text in ids.items() if text}})
    try:
        yield
    finally:
        _ids.reset(token)


class Trouble:
    """What keeps something from being done that is tried again and again, perhaps for hours.

    Each is told once until all is over: what is away may refuse in two ways by turns.
    """

    def __init__(self, log: logging.Logger, words: str) -> None:
        self._log = log
        self._words = words
        self._told: set[str] = set()
        self._telling = threading.Lock()

    def met(self, error: object) -> None:
        """It could not be done."""
        text = str(error)
        with self._telling:
            level = logging.DEBUG if text in self._told else logging.WARNING
            self._told.add(text)
        self._log.log(level, "%s: %s", self._words, text)

    def over(self) -> None:
        """It was done: what comes next is news."""
        self._told.clear()


class TextLines(logging.Formatter):
    """One line for people, with the ids at its end. Lines that belong to it are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, with its traceback below it."""
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
    """One JSON object per line, with the ids among its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON; a traceback is one of its fields."""
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
    """Write control characters as JSON does: `\\u000a` for the end of a line."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _indented(text: str) -> str:
    return "\n".join(f"  {escape_controls(line)}" for line in text.split("\n"))


def set_up_logs(settings: Settings) -> None:
    """Send everything logged to stderr in the form that the settings ask for."""
    write_as(Form(settings.log_format, settings.log_level))


def write_as(form: Form) -> None:
    """Send everything logged to stderr in this form."""
    global _form  # noqa: PLW0603 (there is one stderr)
    _form = form
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form.style == "json" else TextLines())
    logging.basicConfig(level=form.level.upper(), handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    # Of each try to reach ZooKeeper it writes several lines; our session says what matters, once.
    logging.getLogger("kazoo").setLevel(logging.ERROR)


def current_form() -> Form | None:
    """How this process writes its lines; None if nobody has said."""
    return _form


def _word(text: str) -> str:
    """A value that ends where it seems to."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)

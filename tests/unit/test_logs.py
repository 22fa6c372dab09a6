"""Log lines as text and JSON, with the ids of their subjects."""

import io
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.errors import Unavailable
from penstock.telemetry import logs

Lines = Callable[[logging.Formatter], tuple[logging.Logger, io.StringIO]]


@pytest.fixture
def open_logger() -> Iterator[Lines]:
    """A logger that writes to a string with a given formatter."""
    logger = logging.getLogger("test of log lines")
    logger.propagate = False
    logger.setLevel(logging.INFO)

    def begin(formatter: logging.Formatter) -> tuple[logging.Logger, io.StringIO]:
        text = io.StringIO()
        handler = logging.StreamHandler(text)
        handler.setFormatter(formatter)
        logger.handlers = [handler]
        return logger, text

    yield begin
    logger.handlers = []


def test_a_line_of_text_ends_with_the_ids(open_logger: Lines) -> None:
    logger, text = open_logger(logs.TextLines())
    with logs.about(lot="20261115", run="r1", part=""):
        logger.info("it goes on")
    logger.info("it is over")
    first, second = text.getvalue().splitlines()
    assert first.endswith(" INFO it goes on [lot=20261115 run=r1]")
    assert second.endswith(" INFO it is over")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a b", '"a b"'), ("x]\nforged", '"x]\\nforged"'), ("lot=2", '"lot=2"'), ("å/b:c", "å/b:c")],
)
def test_an_id_with_delimiters_is_quoted(open_logger: Lines, value: str, shown: str) -> None:
    logger, text = open_logger(logs.TextLines())
    with logs.about(dataset=value):
        logger.info("seen")
    assert text.getvalue().endswith(f" seen [dataset={shown}]\n")


FORGED = "x\n2026-11-15 10:00:00,000 INFO key boss was revoked\r\x1b[2K\x9b1A\u2028\u202e\ud800"


def test_text_lines_escape_control_characters(open_logger: Lines) -> None:
    logger, text = open_logger(logs.TextLines())

    logger.info("there is nothing at %s", FORGED)

    [line] = text.getvalue().splitlines()
    assert line.isprintable()
    assert "\\u000a2026-11-15" in line
    assert "\\u001b[2K\\u009b1A\\u2028\\u202e\\ud800" in line


def test_json_lines_escape_cursor_movements(open_logger: Lines) -> None:
    logger, text = open_logger(logs.JsonLines())

    logger.info("there is nothing at %s", FORGED)

    [line] = text.getvalue().splitlines()
    assert line.isprintable()
    assert json.loads(line)["message"].endswith(FORGED)


def test_no_line_of_a_traceback_looks_like_a_log_line(open_logger: Lines) -> None:
    logger, text = open_logger(logs.TextLines())
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("it broke")

    first, *others = text.getvalue().split("\n")[:-1]
    assert first.endswith("it broke")
    assert all(line.startswith("  ") and line.isprintable() for line in others)


def test_a_traceback_follows_the_line(open_logger: Lines) -> None:
    logger, text = open_logger(logs.TextLines())
    with logs.about(lot="7"):
        try:
            raise ValueError("odd")
        except ValueError:
            logger.exception("failed")
    lines = text.getvalue().splitlines()
    assert lines[0].endswith("failed [lot=7]")
    assert lines[-1] == "  ValueError: odd"


def test_a_json_line_has_the_ids_as_fields(open_logger: Lines) -> None:
    logger, text = open_logger(logs.JsonLines())
    with logs.about(lot="7", job="shop/clean", message="not this"):
        logger.info("published")
        with logs.about(part="a", job="shop/other"):
            logger.error("failed")
    outer, inner = map(json.loads, text.getvalue().splitlines())
    assert set(outer) == {"time", "level", "logger", "message", "lot", "job"}
    assert (outer["lot"], outer["job"], outer["message"]) == ("7", "shop/clean", "published")
    assert (inner["lot"], inner["job"], inner["part"]) == ("7", "shop/other", "a")


def test_ids_apply_only_to_the_thread_that_set_them(open_logger: Lines) -> None:
    logger, text = open_logger(logs.JsonLines())
    thread = threading.Thread(target=lambda: logger.info("elsewhere"))
    with logs.about(lot="7"):
        thread.start()
        thread.join()
    assert "lot" not in json.loads(text.getvalue())


def test_ids_are_removed_after_an_error(open_logger: Lines) -> None:
    logger, text = open_logger(logs.JsonLines())
    with pytest.raises(ValueError, match="odd"), logs.about(lot="7"):
        raise ValueError("odd")
    logger.info("after it")
    assert "lot" not in json.loads(text.getvalue())


def test_a_child_process_can_inherit_the_log_form(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    monkeypatch.setattr(sys, "stderr", text := io.StringIO())
    monkeypatch.setattr(logs, "_form", None)
    try:
        assert logs.current_form() is None
        logs.write_as(logs.Form("json", "warning"))
        assert logs.current_form() == logs.Form("json", "warning")
        logging.getLogger("test").info("quiet")
        logging.getLogger("test").warning("loud")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert [json.loads(line)["message"] for line in text.getvalue().splitlines()] == ["loud"]


def test_each_error_is_logged_once_until_recovery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble = logs.Trouble(logging.getLogger("test of troubles"), "lot 100% waits")
    for text in ("down", "reset", "down", "reset"):
        trouble.met(Unavailable(text))
    trouble.over()
    trouble.met(Unavailable("reset"))
    assert caplog.messages == [f"lot 100% waits: {text}" for text in ("down", "reset", "reset")]

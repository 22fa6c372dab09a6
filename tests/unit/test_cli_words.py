"""Times, exit codes and documents: what commands read and say."""

import inspect

import pytest
from rich.console import Console

from penstock import errors
from penstock.cli import app as commands
from penstock.cli.app import COMMANDS, make_app
from penstock.cli.exit_codes import EXIT_CODES, EXPLANATION, exit_code
from penstock.cli.formats import read_moment, read_span, show_duration, show_time
from penstock.cli.main import main
from penstock.cli.stdout import OutputError
from penstock.client import ApiError, Unreachable
from penstock.clock import DAY, HOUR, SECOND, parse_time
from penstock.errors import Invalid, PenstockError


@pytest.mark.parametrize(
    ("text", "span"),
    [("90d", 90 * DAY), ("12h", 12 * HOUR), ("2w", 14 * DAY), (" 5m ", 300 * SECOND), ("0s", 0)],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: int) -> None:
    assert read_span(text) == span


@pytest.mark.parametrize("text", ["", "d", "90", "-1d", "1.5d", "90 days", "9999999999d"])
def test_other_spans_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(Invalid, match="90d"):
        read_span(text)


def test_a_moment_is_a_time_or_so_long_ago() -> None:
    now = parse_time("2026-11-15T09:30:00Z")
    assert read_moment(None) is None
    assert read_moment("2h", lambda: now) == "2026-11-15T07:30:00.000Z"
    assert read_moment("2026-11-15") == "2026-11-15T00:00:00.000Z"
    assert read_moment("2026-11-15T10:30:00+01:00") == "2026-11-15T09:30:00.000Z"
    with pytest.raises(Invalid, match="two hours ago"):
        read_moment("noon")


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, ""),
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1.5 s"),
        (84_000, "84 s"),
        (189_000, "3 min 9 s"),
        (7_260_000, "2 h 1 min"),
    ],
)
def test_durations_are_in_the_unit_that_fits(milliseconds: int | None, text: str) -> None:
    assert show_duration(milliseconds) == text


def test_times_are_shown_without_what_nobody_reads() -> None:
    assert show_time("2026-11-15T09:30:00.123456Z") == "2026-11-15 09:30:00"
    assert show_time(None) == ""


def test_every_error_has_an_exit_code() -> None:
    kinds = {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, PenstockError) and kind is not PenstockError
    }
    assert kinds | {ApiError, OutputError} == EXIT_CODES.keys()
    assert exit_code(Unreachable("gone")) == EXIT_CODES[errors.Unavailable]
    for code in {0, *EXIT_CODES.values(), 130}:
        assert f"{code} " in EXPLANATION


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_command_has_help_and_shows_how_it_is_used(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    app = make_app()
    app.console = Console()  # another test may have left one of its own width behind
    app([name, "--help"])
    text = capsys.readouterr().out
    assert f"Usage: penstock {name}" in text
    assert name in ("config", "keys") or f"  penstock {name}" in text
    assert max(map(len, text.splitlines())) <= 80


def _failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def app(arguments: list[str]) -> None:
        raise error

    monkeypatch.setattr(commands, "make_app", lambda: app)


def test_an_unexpected_error_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(commands.TRACEBACK_VARIABLE, raising=False)
    _failing(monkeypatch, RuntimeError("no\nluck"))
    assert main([]) == 1
    told = capsys.readouterr().err
    assert told.startswith("penstock: unexpected RuntimeError: no luck; this is a bug")
    assert told.count("\n") == 1
    monkeypatch.setenv(commands.TRACEBACK_VARIABLE, "1")
    with pytest.raises(RuntimeError, match="luck"):
        main([])


def test_a_word_too_many_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "update-report", "bid0000000001", "again"]) == 2
    told = "Unexpected argument 'again'. See `penstock ingest update-report --help`."
    assert capsys.readouterr().err == f"penstock: {told}\n"


def test_an_interrupted_command_ends_with_130(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _failing(monkeypatch, KeyboardInterrupt())
    assert main([]) == 130
    assert capfd.readouterr().err == "penstock: interrupted\n"

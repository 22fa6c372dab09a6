"""The commands that the web page shows are commands that there are."""

import re
from pathlib import Path

import pytest

from penstock.cli.app import make_app

PAGES = Path(__file__).resolve().parents[2] / "ui" / "src"
# A command ends with its line, or where the page's own code goes on.
COMMAND = re.compile(r"\bpenstock ([a-z]+ ?(?:[^<`\"{}\\]|\$?\{[^}]*\})*)")


def shown() -> list[str]:
    """Every command in the page's source, with what it is given."""
    files = sorted(PAGES.rglob("*.tsx"))
    # A command behind a written line break begins a line of its own.
    texts = [text for file in files for text in re.split(r"\\n|\n", file.read_text())]
    return [found.strip() for text in texts for found in COMMAND.findall(text)]


def test_the_page_shows_commands() -> None:
    assert "arcs start" in shown()


@pytest.mark.parametrize("command", shown())
def test_a_command_that_the_page_shows_is_one(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    words = command.split()
    names = []
    app = make_app()
    for word in words:
        if word not in app:
            break
        names.append(word)
        app = app[word]
    make_app()([*names, "--help"])
    usage = capsys.readouterr().out
    assert "COMMAND" not in usage.splitlines()[0], f"penstock {command} lacks a command"
    for flag in (word for word in words if word.startswith("--")):
        assert flag in usage, f"penstock {' '.join(names)} has no {flag}"

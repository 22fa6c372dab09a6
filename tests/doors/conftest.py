"""Fixtures of the tests of doors."""

from pathlib import Path

import pytest

from tests.doors.commands import Terminal, go_home


@pytest.fixture
def penstock(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Terminal:
    """A terminal of 160 columns, in a home folder without settings."""
    go_home(monkeypatch, tmp_path, columns=160)
    return Terminal(capsys)

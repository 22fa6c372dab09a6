"""The commands on docs/replay.md do what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from tests.doors.commands import Outcome, program
from tests.doors.serving import running

PAGE = Path(__file__).resolve().parents[2] / "docs" / "replay.md"
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_DURATION = re.compile(r"\b[\d.]+ (ms|s|min)\b")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_blocks_of_the_page_work(database_url: str, tmp_path: Path) -> None:
    kinds = [kind for kind, _ in _BLOCK.findall(PAGE.read_text())]
    assert kinds == ["toml", "sh", "sh", "text", "sh", "text"]
    last = Outcome(1, "", "nothing was run")
    with running(database_url) as server:
        settings = server.plane.settings
        variables = {
            "PENSTOCK_URL": server.server.url,
            "PENSTOCK_DATABASE": settings.database,
            "PENSTOCK_OBJECTS": settings.objects,
        }
        for kind, text in _BLOCK.findall(PAGE.read_text()):
            if kind == "toml":
                (tmp_path / "arcs.toml").write_text(text)
            elif kind == "sh":
                for line in text.splitlines():
                    command = shlex.split(line)[1:]
                    last = program(tmp_path, *command, variables=variables)
                    assert last.code == 0, f"{line}: {last.err}"
            else:
                assert _plain(last.text).startswith(_plain(text))


def _plain(text: str) -> str:
    """Return the text without parts that vary."""
    return _DURATION.sub("…", text)

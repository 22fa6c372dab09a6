"""What the command of an arc gets from its engine, and as which user it runs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.commands import Outcome, Terminal, go_home, program
from tests.doors.serving import Running, running

LOT = "20261115PT1H00"
LOOK = r"""
in=$(sed -n 's/.*"path": "\(.*\)".*/\1/p' "$PENSTOCK_TASK")
test -z "$in" || cat "$in" > /dev/null
id -un > "$PENSTOCK_OUTPUT/user.txt"
env > "$PENSTOCK_OUTPUT/env.txt"
engine=$(awk '{ print $4 }' "/proc/$PPID/stat")
for process in "$PPID" "$engine"; do
  tr '\0' '\n' 2>/dev/null < "/proc/$process/environ" || echo unreadable
done > "$PENSTOCK_OUTPUT/processes.txt" 2>/dev/null
tr '\0' '\n' < "/proc/$PPID/environ" > "$PENSTOCK_OUTPUT/parent.txt" 2>/dev/null || true
cat "$DATABASE_FILE" > /dev/null 2>&1 && echo readable > "$PENSTOCK_OUTPUT/database.txt" || true
"""
only_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
pytestmark = only_sqlite


class Spied:
    """An arc of namespace `a` that writes down what its command sees, and engines that run it."""

    def __init__(self, server: Running, folder: Path, penstock: Terminal) -> None:
        self.penstock = penstock
        self._server = server
        self._folder = folder

    def declare(self, script: str = LOOK, **workload: object) -> None:
        path = self._server.plane.settings.database.removeprefix("sqlite:///")
        load = {
            "command": ["sh", "-c", script],
            "environment": {"DATABASE_FILE": path},
            **workload,
        }
        arc = {"inputs": ["orders"], "outputs": ["seen"], "workload": load, "retry": {"tries": 1}}
        (self._folder / "arcs.yaml").write_text(
            json.dumps({"namespace": "a", "arcs": {"spy": arc}})
        )
        assert self.penstock("arcs", "apply", "arcs.yaml").code == 0
        assert self.penstock("lots", "register", "a/orders", LOT).code == 0

    def work(self, *arguments: str, **variables: str) -> Outcome:
        settings = self._server.plane.settings
        secrets = {
            "PENSTOCK_DATABASE": settings.database,
            "PENSTOCK_OBJECTS": settings.objects,
            "PENSTOCK_EZID_PASSWORD": "hush",
            "AWS_SECRET_ACCESS_KEY": "hush",
            "TZ": "Pacific/Auckland",
        }
        where = {**secrets, **variables}
        return program(self._folder, "arcs", "start", "--once", *arguments, variables=where)

    def seen(self) -> dict[str, str]:
        """What the command has written, by the names of its files."""
        shown = self.penstock("lots", "show", "a/seen", LOT, "--json").document
        paths = [Path(item["uri"].removeprefix("file://")) for item in shown["manifest"]["uris"]]
        return {path.stem: path.read_text() for path in paths}


@pytest.fixture
def spied(
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Spied]:
    go_home(monkeypatch, tmp_path, columns=200)
    with running(database_url) as server:
        monkeypatch.setenv("PENSTOCK_URL", server.server.url)
        yield Spied(server, tmp_path, Terminal(capsys))


def test_command_does_not_see_secrets_of_the_engine(spied: Spied) -> None:
    spied.declare()

    done = spied.work()

    assert done.code == 0, done.err
    seen = spied.seen()
    for text in (seen["env"], seen["parent"]):
        assert "PENSTOCK_DATABASE" not in text
        assert "PENSTOCK_EZID_PASSWORD" not in text
    assert "AWS_SECRET_ACCESS_KEY" not in seen["env"]
    assert "TZ=Pacific/Auckland" in seen["env"]
    assert f"PENSTOCK_LOT={LOT}" in seen["env"]


def test_command_of_another_user_reads_no_secret_anywhere(spied: Spied) -> None:
    spied.declare()

    done = spied.work("--run-as", "nobody")

    if os.geteuid() != 0:
        assert "needs an engine that runs as root" in done.complaint
        return
    assert done.code == 0, done.err
    assert "commands as nobody" in done.err
    seen = spied.seen()
    assert seen["user"] == "nobody\n"
    assert "USER=nobody" in seen["env"]
    assert seen["processes"] == "unreadable\nunreadable\n"
    assert "database" not in seen


@pytest.mark.parametrize("trap", ["ln -s /etc/shadow", "ln -s /"])
def test_command_of_another_user_cannot_publish_a_link(spied: Spied, trap: str) -> None:
    spied.declare(f'{trap} "$PENSTOCK_OUTPUT/bait"')

    done = spied.work(PENSTOCK_RUN_AS="nobody" if os.geteuid() == 0 else "")

    if os.geteuid() == 0:
        assert "the command left the link 'bait'" in done.err


def test_command_gets_a_variable_that_the_engine_allows(spied: Spied) -> None:
    spied.declare(pass_environment=["AWS_SECRET_ACCESS_KEY"])

    assert spied.work(PENSTOCK_COMMAND_ENVIRONMENT_ALLOWED="AWS_SECRET_ACCESS_KEY").code == 0

    assert "AWS_SECRET_ACCESS_KEY=hush" in spied.seen()["env"]


def test_command_that_asks_for_more_than_the_engine_allows_fails(spied: Spied) -> None:
    spied.declare(pass_environment=["AWS_SECRET_ACCESS_KEY"])

    done = spied.work()

    assert "the engine does not pass AWS_SECRET_ACCESS_KEY to commands" in done.err
    assert "is published" not in done.err


def test_no_engine_passes_its_secrets(spied: Spied) -> None:
    spied.declare()

    done = spied.work(PENSTOCK_COMMAND_ENVIRONMENT_ALLOWED="LANG,PENSTOCK_DATABASE")

    assert done.code != 0
    assert "names PENSTOCK_DATABASE, which holds a secret of the engine" in done.complaint


def test_engine_runs_only_arcs_of_its_namespaces(spied: Spied) -> None:
    spied.declare()

    assert "all arcs of b,c" in spied.work("--namespace", "b", "--namespace", "c").err
    assert spied.penstock("lots", "show", "a/seen", LOT).code != 0

    spied.work(PENSTOCK_ARC_NAMESPACES="b,a")
    assert "env" in spied.seen()

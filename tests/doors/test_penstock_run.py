"""`penstock run`: any command, in any language, made safe by a claim."""

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from penstock.cli.lots.run import location_variables
from penstock.client import Client
from penstock.errors import Invalid
from penstock.schema.catalog import EntityId
from penstock.schema.locks import Work
from tests.doors.commands import Outcome, Terminal, environment, go_home, program
from tests.doors.waiting import until
from tests.running import ServerProcess

# One worker has the servers that these tests share.
pytestmark = pytest.mark.xdist_group("server")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHOW = "env | grep ^PENSTOCK_ | sort"


@dataclass(frozen=True)
class Shop:
    """A namespace of its own, whose job `etl` reads `raw.in` and writes `out`."""

    folder: Path
    client: Client
    namespace: str
    penstock: Terminal

    @property
    def job(self) -> str:
        return f"{self.namespace}/etl"

    @property
    def variables(self) -> dict[str, str]:
        return {"PENSTOCK_URL": self.client.url}

    def run(self, *arguments: str) -> Outcome:
        """Run a lot from this process."""
        return self.penstock("run", self.job, *arguments)

    def run_apart(self, *arguments: str) -> Outcome:
        """Run a lot from a process of its own."""
        return program(self.folder, "run", self.job, *arguments, variables=self.variables)

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "penstock.cli", "run", self.job, *arguments]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment(self.folder, **self.variables),
            stderr=subprocess.DEVNULL,
        )

    def work(self, lot: str) -> Work:
        return self.client.job_lot(self.namespace, "etl", lot)

    def release(self, lot: str) -> None:
        self.client.end_claim(self.namespace, "etl", lot, "to see what happens")


@pytest.fixture
def shop(
    server: ServerProcess,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shop]:
    go_home(monkeypatch, tmp_path)
    monkeypatch.setenv("PENSTOCK_URL", server.url)
    namespace = f"shop-{uuid.uuid4().hex[:12]}"
    with Client(server.url) as client:
        client.wire_job(
            namespace, "etl", inputs=["raw.in"], outputs=["out"], back_off_seconds=0, tries_max=2
        )
        client.register_lots(namespace, "raw.in", ["1", "2", "3"])
        yield Shop(tmp_path, client, namespace, Terminal(capfd))


def test_the_command_finds_its_lot_in_its_environment(shop: Shop) -> None:
    done = shop.run_apart("--location", "out=/data/a b", "--", "sh", "-c", SHOW)
    found = dict(line.split("=", 1) for line in done.text.splitlines())
    run = shop.client.run(found["PENSTOCK_RUN_ID"])
    assert (run.state, run.job.name) == ("COMPLETED", "etl")
    assert found == {
        "PENSTOCK_URL": shop.client.url,
        "PENSTOCK_NAMESPACE": shop.namespace,
        "PENSTOCK_JOB": "etl",
        "PENSTOCK_LOT": "1",
        "PENSTOCK_RUN_ID": run.id,
        "PENSTOCK_CLAIM": run.id,
        "PENSTOCK_TOKEN": "1",
        "PENSTOCK_ATTEMPT": "1",
        "PENSTOCK_INPUT_RAW_IN": "raw.in",
        "PENSTOCK_OUTPUT_OUT": "/data/a b",
    }
    assert done.err == f"lot 1 of job {shop.job} is completed\n"
    assert shop.work("1").state == "DONE"
    assert shop.work("2").state == "READY"


def test_the_place_of_a_dataset_is_the_one_in_the_catalog(shop: Shop) -> None:
    inputs = ["--input", "s3://lake/raw/orders", "--input", "file//data/rates"]
    lot = ("20261115PT24H",)
    assert shop.penstock("jobs", "wire", f"{shop.namespace}/places", *inputs).code == 0
    for at in (("s3://lake", "raw/orders"), ("file", "/data/rates")):
        shop.client.register_lots(*at, lot)
    done = shop.penstock("run", "places", "-n", shop.namespace, "--", "sh", "-c", SHOW)
    assert "PENSTOCK_INPUT_RAW_ORDERS=s3://lake/raw/orders\n" in done.text
    assert "PENSTOCK_INPUT_DATA_RATES=/data/rates\n" in done.text


def test_a_loop_follows_its_job_to_other_datasets(shop: Shop) -> None:
    """While the command works on the first lot, its job is told to write one more dataset."""
    penstock = f"{shlex.quote(sys.executable)} -m penstock.cli"
    wire = f"{penstock} jobs wire {shop.job} --input raw.in --output out --output more >&2"
    show = "echo $PENSTOCK_LOT $PENSTOCK_OUTPUT_OUT $PENSTOCK_OUTPUT_MORE"
    command = f'{show}; test "$PENSTOCK_LOT" != 1 || {wire}'
    done = shop.run_apart("--loop", "--location", "out=/here", "--", "sh", "-c", command)
    assert done.text.splitlines() == ["1 /here", "2 /here more", "3 /here more"]
    assert shop.client.lot(shop.namespace, "more", "2").status == "READY"


def test_arguments_are_never_read_by_a_shell(shop: Shop) -> None:
    trick = "$(touch tricked); `id` 'x' \"y\" *"
    done = shop.run("--", sys.executable, "-c", "import sys; print(sys.argv[1:])", trick, "--json")
    assert done.text == f"{[trick, '--json']!r}\n"
    assert not (shop.folder / "tricked").exists()


def test_a_command_that_fails_leaves_the_last_line_of_its_stderr(shop: Shop) -> None:
    done = shop.run("--", "sh", "-c", "echo out; echo first >&2; echo 'no disk' >&2; exit 7")
    assert done.code == 1
    assert done.out == "out\n"
    lines = done.err.splitlines()
    assert lines[:2] == ["first", "no disk"]
    assert "has failed: no disk; try 1 of 2" in lines[2]
    work = shop.work("1")
    assert (work.state, work.error, work.attempts) == ("READY", "no disk", 1)
    again = shop.run("--", "sh", "-c", "kill -9 $$")
    assert again.code == 1
    assert "killed by SIGKILL; try 2 of 2; that was the last try, and the lot is held" in again.err
    assert shop.work("1").state == "HELD"


def test_a_loop_goes_on_after_a_failure_until_nothing_is_left(shop: Shop) -> None:
    done = shop.run(
        "--loop", "--newest", "--json", "--", "sh", "-c", "echo x; test $PENSTOCK_LOT != 2"
    )
    assert done.code == 1
    ran = json.loads(done.out)
    assert [(lot["lot"], lot["state"], lot["exitCode"]) for lot in ran["lots"]] == [
        ("3", "COMPLETED", 0),
        ("2", "FAILED", 1),
        ("2", "FAILED", 1),
        ("1", "COMPLETED", 0),
    ]
    assert ran["why"]["heldLots"] == 1
    assert "x\n" in done.err


def test_nothing_to_do_is_no_failure(shop: Shop) -> None:
    assert shop.run("--loop", "--", "true").code == 0
    done = shop.run("--", "false")
    assert (done.code, done.out) == (0, "")
    assert "nothing to do" in done.err
    told = shop.run("--json", "--", "false")
    assert told.code == 3
    assert json.loads(told.out)["lots"] == []


def test_a_run_wires_a_new_job(shop: Shop) -> None:
    named = ["--input", "raw.in", "--output", "copy", "--namespace", shop.namespace]
    command = ["run", "fresh", *named, "--owner", "me", "--lease", "30", "--", "true"]
    assert shop.penstock(*command).code == 0
    wiring = shop.client.wiring(shop.namespace, "fresh")
    assert wiring.outputs == [EntityId(shop.namespace, "copy")]
    assert shop.client.job_lot(shop.namespace, "fresh", "1").owner == "me"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "there is no command"),
        (["--", "no-such-program"], "no-such-program cannot be run"),
        (["--location", "out", "--", "true"], "write DATASET=PATH"),
        (["--location", "other=/x", "--", "true"], "'other' is no dataset of this job"),
        (["ls", "-l"], "-l"),
    ],
)
def test_what_cannot_be_run_is_refused_before_a_claim(
    shop: Shop, arguments: list[str], complaint: str
) -> None:
    done = shop.run(*arguments)
    assert (done.code, complaint in done.complaint) == (2, True)
    assert shop.work("1").attempts == 0


def test_a_file_that_is_no_program_costs_no_try(shop: Shop) -> None:
    broken = shop.folder / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    done = shop.run("--", str(broken))
    assert (done.code, "cannot be run" in done.complaint) == (2, True)
    work = shop.work("1")
    assert (work.state, work.attempts) == ("READY", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_the_claim_given_back(shop: Shop, number: signal.Signals) -> None:
    script = """
        trap 'echo told > told; kill $!; exit 0' TERM INT
        sleep 1000 &
        echo $! > started
        wait
    """
    running = shop.start("--loop", "--", "sh", "-c", script)
    started = shop.folder / "started"
    until(lambda: started.exists() and started.read_text() != "")
    running.send_signal(number)
    assert running.wait() == 128 + number
    assert (shop.folder / "told").read_text() == "told\n"
    work = shop.work("1")
    assert (work.state, work.attempts) == ("READY", 0)
    assert shop.work("2").token == 0


def test_one_who_waits_ends_when_told(shop: Shop) -> None:
    waiting = shop.start("--loop", "--wait", "--", "true")
    until(lambda: shop.work("3").state == "DONE")
    shop.client.register_lots(shop.namespace, "raw.in", ["4"])
    until(lambda: shop.work("4").state == "DONE")
    waiting.terminate()
    assert waiting.wait() == 128 + signal.SIGTERM


def test_a_lost_lease_stops_the_command_and_all_it_started(shop: Shop) -> None:
    script = "(trap '' TERM; exec sleep 1000) & echo $! > started; wait"
    running = shop.start("--lease", "1", "--", "sh", "-c", script)
    started = shop.folder / "started"
    until(lambda: started.exists() and started.read_text() != "")
    shop.release("1")
    assert running.wait() == 1
    until(lambda: not _is_alive(int(started.read_text())))
    work = shop.work("1")
    assert (work.state, work.attempts) == ("READY", 0)
    assert shop.client.dataset(shop.namespace, "out").current_version_number == 1


def test_a_command_does_not_outlive_the_claim_of_a_killed_worker(shop: Shop) -> None:
    running = shop.start("--lease", "1", "--", "sh", "-c", "echo $$ > started; exec sleep 1000")
    started = shop.folder / "started"
    until(lambda: started.exists() and started.read_text() != "")
    until(lambda: len(_children(running.pid)) == 2)
    running.kill()
    running.wait()
    until(lambda: not _is_alive(int(started.read_text())))
    until(lambda: shop.work("1").state == "READY")
    assert shop.run("--", "true").code == 0
    assert (shop.work("1").state, shop.work("1").token) == ("DONE", 2)


def _children(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children()]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text()


def test_a_long_command_keeps_its_lease(shop: Shop) -> None:
    script = "until test -e go; do sleep 0.05; done"
    running = shop.start("--lease", "1", "--", "sh", "-c", script)
    until(lambda: shop.work("1").state == "RUNNING")
    for _ in range(4):
        until(partial(_is_extended, shop, shop.work("1").lease_until or ""))
    (shop.folder / "go").touch()
    assert running.wait() == 0
    work = shop.work("1")
    assert (work.state, work.attempts) == ("DONE", 1)


def _is_extended(shop: Shop, before: str) -> bool:
    return (shop.work("1").lease_until or "") > before


def test_what_a_command_leaves_running_is_not_waited_for(shop: Shop) -> None:
    done = shop.run_apart(
        "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! > left; echo hi >&2"
    )
    assert done.err.startswith("hi\n")
    assert done.code == 0
    os.kill(int((shop.folder / "left").read_text()), signal.SIGKILL)


def test_the_examples_work_each_lot_once(server: ServerProcess, tmp_path: Path) -> None:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = environment(tmp_path, PENSTOCK_URL=server.url, PATH=programs)
    folder = tmp_path / "a place"
    done = subprocess.run(
        [EXAMPLES / "guarded.sh", folder], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    days = [str(day) for day in range(20261101, 20261121)]
    ledger = (folder / "totals" / "ledger.txt").read_text().splitlines()
    assert Counter(line.split()[0] for line in ledger) == Counter(days)
    assert done.stderr.count(" is completed\n") == 20
    sums = tmp_path / "sums"
    sums.mkdir()
    worker = [sys.executable, EXAMPLES / "worker.py", folder / "orders", sums]
    done = subprocess.run(
        list(map(str, worker)), env=environ, capture_output=True, text=True, check=False
    )
    assert "completed=20, failed=0" in done.stdout, done.stderr
    assert sorted(path.stem for path in sums.iterdir()) == days
    assert (sums / "20261107.txt").read_text() == "107\n"


def test_datasets_of_one_name_are_told_apart_by_their_namespaces() -> None:
    one, two, three = EntityId("a", "x"), EntityId("s3://b", "x"), EntityId("a", "y.z")
    places = {one: "1", two: "2", three: "3"}
    assert location_variables([one, two, three], [], places) == {
        "PENSTOCK_INPUT_A_X": "1",
        "PENSTOCK_INPUT_S3_B_X": "2",
        "PENSTOCK_INPUT_Y_Z": "3",
    }
    alike = EntityId("a", "X")
    with pytest.raises(Invalid, match="have the same variable name"):
        location_variables([one, alike], [], {one: "1", alike: "2"})


def test_a_lot_is_run_by_its_name(shop: Shop) -> None:
    ran = shop.run("--lot", "2", "--", "sh", "-c", "true")

    assert ran.code == 0
    assert shop.work("2").state == "DONE"
    assert shop.work("1").state == "READY"


def test_a_lot_that_may_not_run_is_refused_with_why(shop: Shop) -> None:
    shop.client.hold_work(shop.namespace, "etl", "2", "the rates are wrong")

    refused = shop.run("--lot", "2", "--", "sh", "-c", "true")

    assert refused.code == 1
    assert f"job {shop.job} cannot run on lot 2 now" in refused.complaint
    assert "the rates are wrong" in refused.complaint
    assert "does not know lot 99" in shop.run("--lot", "99", "--", "sh", "-c", "true").complaint


def test_a_named_lot_and_a_loop_exclude_each_other(shop: Shop) -> None:
    assert "--lot names one lot" in shop.run("--lot", "2", "--loop", "--", "true").complaint

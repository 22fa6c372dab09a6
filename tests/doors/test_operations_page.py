"""docs/operations.md: what it shows is run, and does what it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from penstock.client import Client
from tests.doors.commands import environment
from tests.doors.serving import running
from tests.servers import free_port
from tests.spans import collecting

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


EXAMPLE, BACKUP, RESTORE = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)


def shell(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """Run commands of the page in a folder that is the user's home."""
    port = free_port()
    variables = environment(
        folder,
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        PENSTOCK_PORT=str(port),
        PENSTOCK_URL=f"http://127.0.0.1:{port}",
    )
    variables.pop("XDG_DATA_HOME", None)
    return subprocess.run(
        ["bash", "-euc", f"set -o pipefail\ntrap 'kill $(jobs -p) || true' ERR\n{script}"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_does_what_the_page_says(tmp_path: Path) -> None:
    script = EXAMPLE
    with collecting() as collector, running(f"sqlite:///{tmp_path / 'other.db'}") as other:
        script = script.replace("http://collector.example:4318", collector.url)
        script = script.replace("http://lineage.example:5000", other.server.url)
        done = shell(tmp_path, script)
        log = (tmp_path / "penstock.log").read_text()
        assert done.returncode == 0, done.stdout + done.stderr + log
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert any("is published: complete" in line["message"] for line in lines)
        [batch] = {line["lot"] for line in lines}
        assert 'penstock_ingest_jobs{stage="completed"} 1.0' in done.stdout
        names = [span.name for span in collector.spans()]
        assert names.count("ingest.submit") == names.count("lot.publish") == 1
        assert len({span.trace for span in collector.spans()}) == 1
        with Client(other.server.url) as there:
            [run] = there.job_runs("library", "ingest.scans").runs
        assert run.facets["penstock_deposit"]["batch"] == batch
    assert "Traceback" not in log
    assert f"subscriber set url={other.server.url}/api/v1/lineage" in log


def test_what_was_backed_up_while_it_ran_is_whole_when_it_is_restored(tmp_path: Path) -> None:
    begun = """penstock up 2> penstock.log &
until curl -sf "$PENSTOCK_URL/readyz" > ready.txt; do sleep 0.2; done
penstock ingest collections set scans --namespace library --dataset scans
deposit() {
  echo "$1" > "$HOME/$1.txt"
  penstock ingest watch "$(penstock ingest submit scans "$HOME/$1.txt")"
}
deposit one
"""
    over = "deposit two\nkill %1\nwait"
    looked = "penstock lots list library/scans\nkill $!\nwait"
    done = shell(tmp_path, "\n".join((begun, BACKUP, over, RESTORE, looked)))
    assert done.returncode == 0, done.stdout + done.stderr
    checked = done.stdout.partition("✓")[2]
    assert "✗" not in checked
    assert ("bid0000000001" in checked, "bid0000000002" in checked) == (True, False)

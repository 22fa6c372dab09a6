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


def test_the_example_does_what_the_page_says(tmp_path: Path) -> None:
    [script] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    port = free_port()
    variables = environment(
        tmp_path,
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        PENSTOCK_PORT=str(port),
        PENSTOCK_URL=f"http://127.0.0.1:{port}",
    )
    with collecting() as collector, running(f"sqlite:///{tmp_path / 'other.db'}") as other:
        script = script.replace("http://collector.example:4318", collector.url)
        script = script.replace("http://lineage.example:5000", other.server.url)
        done = subprocess.run(
            ["bash", "-euc", f"set -o pipefail\ntrap 'kill $(jobs -p) || true' ERR\n{script}"],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
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
    assert f"{other.server.url}/api/v1/lineage is told of our runs" in log


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE.read_text())
    assert links
    assert all((PAGE.parent / link).exists() for link in links)

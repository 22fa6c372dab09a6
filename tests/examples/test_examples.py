"""The programs in examples/, run as users run them against an embedded server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Client
from penstock.testing import Server, server
from tests.doors.waiting import until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


@pytest.fixture
def site() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def client(site: Server) -> Client:
    return site.client()


def run(site: Server, name: str, *args: object, status: int = 0) -> str:
    """Return the output of a program."""
    others = {key: value for key, value in os.environ.items() if key[:9] != "PENSTOCK_"}
    command = [sys.executable, str(EXAMPLES / name), *map(str, args)]
    done = subprocess.run(
        command,
        env={**others, "PENSTOCK_URL": site.url},
        cwd=site.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.name))
def test_every_example_has_a_description(path: Path) -> None:
    text = path.read_text()
    assert text.startswith('"""')
    assert f"examples/{path.name}" in text
    assert path.name in Path(__file__).read_text()


def test_report_lineage(site: Server, client: Client, tmp_path: Path) -> None:
    orders, totals = tmp_path / "orders.csv", tmp_path / "totals.csv"
    orders.write_text("customer,amount\nann,3\nbob,4\nann,5\n")
    printed = run(site, "report_lineage.py", orders, totals)
    assert totals.read_text().split() == ["customer,total", "ann,8", "bob,4"]
    dataset = client.dataset("files", "totals.csv")
    assert [field.name for field in dataset.fields] == ["customer", "total"]
    version = client.dataset_version("files", "totals.csv", dataset.current_version or "")
    assert version.created_by_run is not None
    assert f"run {version.created_by_run.id} made version 1 of totals.csv" in printed
    assert "job:scripts:add_up" in printed
    assert "dataset:files:orders.csv" in printed

    orders.write_text("customer,amount\nann,many\n")
    run(site, "report_lineage.py", orders, totals, status=1)
    failed, good = client.job_runs("scripts", "add_up").runs
    assert (failed.state, good.state) == ("FAILED", "COMPLETED")
    assert client.dataset("files", "totals.csv").current_version == dataset.current_version


def test_claims(site: Server, client: Client, tmp_path: Path) -> None:
    for name, text in {"a": "1\n2\n", "b": "3\n", "c": "not a number\n"}.items():
        (tmp_path / name).write_text(text)
    printed = run(site, "claims.py", tmp_path)
    assert printed.startswith("3 new lots\n")
    assert {"a done", "b done"} <= set(printed.splitlines())
    assert "c failed: invalid literal" in printed
    assert (tmp_path / "a.doubled").read_text() == "2\n4\n"
    states = {work.lot: work.state for work in client.job_lots("sums", "double").lots}
    assert (states["a"], states["b"]) == ("DONE", "DONE")
    assert states["c"] in ("RETRYABLE", "READY")
    assert run(site, "claims.py", tmp_path).startswith("0 new lots\n")


def test_worker(site: Server, client: Client, tmp_path: Path) -> None:
    orders, sums = tmp_path / "orders", tmp_path / "sums"
    orders.mkdir()
    sums.mkdir()
    client.wire_job("shop", "add_up", inputs=["orders"], outputs=["sums"])
    for day, amount in {"20261101": 7, "20261102": 8}.items():
        (orders / f"{day}.csv").write_text(f"order,amount\na,{amount}\nb,1\n")
        client.register_lots("shop", "orders", [day])
    assert "completed=2" in run(site, "worker.py", orders, sums)
    assert (sums / "20261102.txt").read_text() == "9\n"


def test_sales_arc(site: Server, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    penstock = Path(sys.executable).with_name("penstock")
    subprocess.run(
        [penstock, "arcs", "apply", "sales_arc.py", "--url", site.url],
        cwd=EXAMPLES,
        check=True,
        capture_output=True,
    )
    monkeypatch.syspath_prepend(EXAMPLES)
    site.put_lot(
        "shop/sales",
        "20261115",
        {
            "region=north/1.csv": b"amount\n1\n2\n",
            "region=north/2.csv": b"amount\n3\n",
            "region=south/1.csv": b"amount\n10\n",
        },
    )
    site.put_lot("shop/sales", "20261116", {})
    with site.working(ingest=False):
        until(lambda: client.arc("shop", "totals").counts.complete == 2)
    assert site.read_lot("shop/totals", "20261115") == {
        "region=north/total.txt": b"6\n",
        "region=south/total.txt": b"10\n",
    }
    manifest = client.manifest("shop", "totals", "20261115")
    assert [part.state for part in manifest.parts] == ["complete", "complete"]
    assert client.manifest("shop", "totals", "20261116").state == "empty"


def test_deposit(site: Server, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "page one"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "1.txt").write_text("a picture")
    (folder / "about.txt").write_text("some words")
    with site.working(arcs=False):
        printed = run(site, "deposit.py", folder)
        assert "producer/about.txt, producer/images/1.txt" in printed
        run(site, "deposit.py", folder)
    (batch,) = client.batches(collection="scans").batches
    assert batch.status == "completed"
    report = client.batch_report(batch.id)
    assert (len(report.successful_jobs), len(report.failed_jobs)) == (1, 0)
    assert report.text in printed
    assert client.dataset("library", "scans").current_version is not None


def test_follow(site: Server, client: Client, tmp_path: Path) -> None:
    client.wire_job("shop", "clean", inputs=["raw"], outputs=["good"])
    client.register_lots("shop", "raw", ["1", "2"])
    position = tmp_path / "position"
    printed = run(site, "follow.py", position, 2)
    assert re.findall(r"shop/raw (\d) from outside", printed) == ["1", "2"]
    for claim in client.claims("shop/clean"):
        claim.complete()
    printed = run(site, "follow.py", position, 2)
    assert re.findall(r"shop/good (\d) from job clean", printed) == ["1", "2"]


def test_lineage_walk(site: Server, client: Client) -> None:
    for job, source, target in (("load", "raw", "clean"), ("sum", "clean", "totals")):
        client.wire_job("shop", job, inputs=[source], outputs=[target])
    client.register_lots("shop", "raw", ["1"])
    runs = {}
    for job in ("load", "sum"):
        (claim,) = client.claims("shop", job)
        claim.complete()
        runs[job] = claim.run_id
    assert run(site, "lineage_walk.py", "shop", "totals").splitlines() == [
        f"0 shop/totals V2 by run {runs['sum']} of sum",
        f"2 shop/clean V2 by run {runs['load']} of load",
        "4 shop/raw V2 by no known run",
    ]

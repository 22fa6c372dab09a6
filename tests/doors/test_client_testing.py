"""`penstock.testing`: servers, lots and arcs in tests of users."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import penstock
import penstock.testing
from penstock.arcs.workload.task import Context
from penstock.errors import Conflict, Invalid
from penstock.testing import ArcFailed, Server
from tests.doors.waiting import until

TOP = Path(__file__).resolve().parents[2]

A_TEST = """
import penstock

def test_one(penstock_server, tmp_path):
    with penstock_server.client() as client:
        assert client.namespaces(offset=1).namespaces == []
        client.put_namespace("mine", owner="me")
    assert (tmp_path / "penstock" / "penstock.db").exists()

def test_another(penstock_server):
    names = [each.name for each in penstock_server.client().namespaces().namespaces]
    assert "mine" not in names
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with penstock.testing.server() as server:
        yield server


@penstock.arc(namespace="shop", inputs=["raw"], outputs=["loud", "quiet"])
def shout(context: Context) -> None:
    """Write two outputs; a lot with `bad` fails."""
    assert threading.current_thread() is threading.main_thread()
    for uri in context.uris:
        text = context.read(uri)
        if text == b"bad":
            raise ValueError("that is bad")
        name = uri.rpartition("/")[2]
        context.write(name, text.upper())
        context.write(f"deep/{name}", text.lower(), "quiet")


@penstock.arc(namespace="shop", inputs=["loud"], outputs=["parts"], parts="{name}.txt")
def cut(context: Context) -> None:
    """Split into a part for each file."""
    for uri in context.uris:
        context.write("made", context.part.encode() + context.read(uri))


def test_server_lasts_for_a_block_and_leaves_nothing(tmp_path: Path) -> None:
    threads = threading.active_count()
    with penstock.testing.server(tmp_path / "kept") as server:
        assert server.client().is_ready()
        assert (tmp_path / "kept" / "penstock.db").exists()
        with penstock.testing.server() as other:
            other.client().put_namespace("mine", owner="me")
            assert "mine" not in [n.name for n in server.client().namespaces().namespaces]
            assert other.folder.exists()
        assert not other.folder.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/livez", trust_env=False)
    until(lambda: threading.active_count() <= threads)


def test_settings_of_the_environment_are_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE", "postgresql://nowhere/x")
    monkeypatch.setenv("PENSTOCK_PORT", "1")
    with penstock.testing.server(tmp_path, batch_events_max=7) as server:
        assert server.plane.settings.batch_events_max == 7
        assert server.client().is_alive()


def test_both_clients(server: Server) -> None:
    async def ask() -> bool:
        async with server.async_client() as client:
            return await client.is_ready()

    assert asyncio.run(ask())
    with server.client(retry_seconds=0) as client:
        assert client.url == server.url


def test_an_arc_is_run_inline_on_a_lot(server: Server) -> None:
    server.put_lot("shop/raw", "1", {"a.txt": b"Hello", "b.txt": b"You"})
    made = server.run_arc(shout, "1")
    assert made.files == made.outputs["loud"] == {"a.txt": b"HELLO", "b.txt": b"YOU"}
    assert made.outputs["quiet"] == {"deep/a.txt": b"hello", "deep/b.txt": b"you"}
    server.declare_arc(cut)
    assert server.run_arc("shop/cut", "1").files == {
        "a.txt/made": b"a.txtHELLO",
        "b.txt/made": b"b.txtYOU",
    }
    graph = server.client().lineage("dataset:shop:parts").graph
    assert {"dataset:shop:raw", "job:shop:shout"} <= {node.id for node in graph}


def test_failed_or_unready_lot_has_a_reason(server: Server) -> None:
    server.put_lot("shop/raw", "1", {"a.txt": b"bad"})
    with pytest.raises(ArcFailed, match="ValueError: that is bad"):
        server.run_arc(shout, "1")
    server.declare_arc(cut)
    with pytest.raises(Conflict, match="cut"):
        server.run_arc("shop/cut", "7")
    with pytest.raises(Invalid, match="is no arc"):
        server.run_arc(len, "1")


def test_lot_can_be_put_again(server: Server) -> None:
    server.put_lot("shop/raw", "1", {"a.txt": b"one"})
    server.put_lot("shop/raw", "1", {"b.txt": b"two"})
    assert server.read_lot("shop/raw", "1") == {"b.txt": b"two"}
    server.put_lot("shop/raw", "2", {})
    assert server.client().manifest("shop", "raw", "2").state == "empty"


def test_plugin_gives_each_test_a_server(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(A_TEST)
    plugin = ["-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_unused_plugin_imports_nothing() -> None:
    code = (
        "import sys, penstock.testing.plugin; "
        "print([name for name in sys.modules if name.startswith('penstock.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['penstock.testing', 'penstock.testing.plugin']"

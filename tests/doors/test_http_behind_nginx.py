"""A server on loopback behind a real nginx: callers from elsewhere look as if they were here."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from penstock.schema.admin import KeyRole
from tests.doors.serving import API, Running, path, running
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.servers import free_port

STOCK = ""
FORWARDING = """
    proxy_http_version 1.1;
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
"""
ARC = {"command": ["touch", "/tmp/penstock-was-here"], "inputs": ["raw"], "outputs": ["clean"]}


@contextmanager
def nginx(folder: Path, server: Running, directives: str) -> Iterator[httpx.Client]:
    """A client of an nginx that passes all calls on to a server."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "nginx is not installed; run `scripts/installed nginx nginx-light`"
    port = free_port()
    configuration = folder / "nginx.conf"
    configuration.write_text(f"""
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {server.server.url};
            {directives}
        }}
    }}
}}
""")
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(configuration)])
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=HANG_SECONDS, verify=False
        ) as client:
            until(lambda: _answers(client))
            yield client
    finally:
        process.terminate()
        process.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/livez").is_success
    except httpx.TransportError:
        return False


def test_behind_a_stock_nginx_every_call_needs_a_key(database_url: str, tmp_path: Path) -> None:
    with running(database_url) as server:
        key = server.key("boss", KeyRole.ADMIN)
        with nginx(tmp_path, server, STOCK) as client:
            arc = path("namespaces", "shop", "arcs", "add")

            refused = client.put(arc, json=ARC)
            served = client.get(f"{API}/namespaces", headers=key)

            assert (refused.status_code, served.status_code) == (401, 200)


@pytest.mark.parametrize("directives", [STOCK, FORWARDING], ids=["stock", "forwarding"])
def test_nginx_does_not_open_a_server_without_keys(
    database_url: str, tmp_path: Path, directives: str
) -> None:
    with running(database_url) as server, nginx(tmp_path, server, directives) as client:
        for answer in (client.get(f"{API}/namespaces"), client.get(f"{API}/key")):
            assert answer.status_code == 401
            assert "prox" in answer.json()["message"]
        assert server.client.get(f"{API}/namespaces").status_code == 200


def test_the_audit_log_names_the_caller_behind_a_listed_proxy(
    database_url: str, tmp_path: Path
) -> None:
    claim = {"x-forwarded-for": "198.51.100.4, 203.0.113.7"}
    with running(database_url, proxies="127.0.0.1") as server:
        key = server.key("boss", KeyRole.ADMIN)
        with nginx(
            tmp_path, server, FORWARDING.replace("$proxy_add_x_forwarded_for", "203.0.113.7")
        ) as client:
            body = {"name": "team", "role": "reader"}
            assert client.post(f"{API}/keys", json=body, headers=key).status_code == 201
        made = {"name": "direct", "role": "reader"}
        assert server.client.post(f"{API}/keys", json=made, headers=key | claim).status_code == 201

        entries = server.client.get(f"{API}/audit", headers=key).json()["entries"]

    addresses = {entry["target"]: entry["address"] for entry in entries}
    assert addresses["team"] == "203.0.113.7"
    assert addresses["boss"] == ""


def test_a_caller_cannot_choose_its_address(database_url: str) -> None:
    claim = {"x-forwarded-for": "203.0.113.7"}
    with running(database_url) as server:
        key = server.key("boss", KeyRole.ADMIN)
        body = {"name": "team", "role": "reader"}
        assert server.client.post(f"{API}/keys", json=body, headers=key | claim).is_success

        entries = server.client.get(f"{API}/audit", headers=key).json()["entries"]

    assert [entry["address"] for entry in entries if entry["target"] == "team"] == ["127.0.0.1"]

"""A real S3 server for tests, on a port of this machine; it keeps everything in memory.

It never outlives the process that started it, not even one that was killed.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx

from tests.patience import HANG_SECONDS
from tests.servers import ServerError, free_port, watch


class ObjectServer:
    """One S3 server. Of the servers that can be had this one creates a key only once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path) -> Self:
        """Run an empty server, whose log is in the folder."""
        server = cls(folder)
        host, _, port = server.address.partition(":")
        others = {name: value for name, value in os.environ.items() if name[:4] != "AWS_"}
        with server._log.open("wb") as log:
            server._process = subprocess.Popen(
                [sys.executable, "-m", "ministack"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=others | {"BIND_HOST": host, "GATEWAY_PORT": port},
                start_new_session=True,
            )
        server._watchdog = watch(server._process.pid, "KILL")
        server._wait_until_ready(server._process)
        return server

    def stop(self) -> None:
        """Stop it; nothing happens if it is not running."""
        if self._process is None or self._watchdog is None:
            return
        self._process.send_signal(signal.SIGKILL)
        # The watchdog goes first: the number of an ended process may be given to another one.
        self._watchdog.kill()
        self._watchdog.communicate()
        self._process.wait()
        self._process = self._watchdog = None

    @property
    def _log(self) -> Path:
        return self.folder / "objects.log"

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            try:
                httpx.get(f"http://{self.address}/", timeout=HANG_SECONDS)
                return
            except httpx.TransportError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    said = self._log.read_text(errors="replace")
                    raise ServerError(
                        f"the S3 server did not start. Its log says:\n{said}"
                    ) from error
            time.sleep(0.05)


def new_bucket(address: str) -> str:
    """The URL of a new bucket of the server at an address."""
    name = f"test-{uuid.uuid4().hex[:16]}"
    httpx.put(f"http://{address}/{name}", timeout=HANG_SECONDS).raise_for_status()
    return f"s3://{name}"


def environment(address: str) -> Mapping[str, str]:
    """What clients of the server at an address have in their environment."""
    return {
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }

"""A real S3 server for tests, on a local port, with all objects in memory.

It never outlives the process that started it, even if that process was killed.
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
    """One S3 server.

    Of the available servers, only this one supports conditional creation of a key.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path) -> Self:
        """Start an empty server with its log in the folder."""
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
        """Stop the server. Do nothing if it is not running."""
        if self._process is None or self._watchdog is None:
            return
        self._process.send_signal(signal.SIGKILL)
        # Stop the watchdog first: the system may reuse the process id of an ended process.
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
                    log = self._log.read_text(errors="replace")
                    raise ServerError(
                        f"the S3 server did not start. Its log says:\n{log}"
                    ) from error
            time.sleep(0.05)


def new_bucket(address: str) -> str:
    """Create a bucket on the server at an address and return its URL."""
    name = f"test-{uuid.uuid4().hex[:16]}"
    httpx.put(f"http://{address}/{name}", timeout=HANG_SECONDS).raise_for_status()
    return f"s3://{name}"


def environment(address: str) -> Mapping[str, str]:
    """Return the environment for clients of the server at an address."""
    return {
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }

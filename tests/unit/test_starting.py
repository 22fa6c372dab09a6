"""Modules that load only when needed, so that commands and servers start faster."""

import subprocess
import sys

SLOW = ("asyncio", "dask", "httpcore", "httpx", "kazoo", "psycopg")


def _loaded_modules(program: str) -> set[str]:
    """Return the slow packages that a program has loaded."""
    code = f"import sys\n{program}\nprint(*(name for name in {SLOW!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_a_local_command_loads_no_http_client() -> None:
    commands = (["--version"], ["--help"], ["claims", "--help"], ["arcs", "--help"])
    lines = "\n".join(f"main({command!r})" for command in commands)
    assert _loaded_modules(f"from penstock.cli.main import main\n{lines}") == set()


def test_a_server_loads_no_http_client_or_unused_database() -> None:
    assert _loaded_modules("import penstock.server.serve") == {"asyncio"}


def test_the_blocking_client_loads_no_event_loop() -> None:
    program = "import penstock\npenstock.Client('http://127.0.0.1:1').close()"
    assert "asyncio" not in _loaded_modules(program)

"""What is not loaded until it is needed: every command and every server starts faster without."""

import subprocess
import sys

SLOW = ("asyncio", "dask", "httpcore", "httpx", "kazoo", "psycopg")


def _loaded(program: str) -> set[str]:
    """Which of the slow packages are there after a program."""
    asked = f"import sys\n{program}\nprint(*(name for name in {SLOW!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_a_command_that_asks_no_server_loads_no_client_of_http() -> None:
    commands = (["--version"], ["--help"], ["claims", "--help"], ["arcs", "--help"])
    lines = "\n".join(f"main({command!r})" for command in commands)
    assert _loaded(f"from penstock.cli.main import main\n{lines}") == set()


def test_a_server_loads_neither_a_client_of_http_nor_another_database() -> None:
    assert _loaded("import penstock.server.serve") == {"asyncio"}


def test_a_client_that_blocks_loads_no_event_loop() -> None:
    program = "import penstock\npenstock.Client('http://127.0.0.1:1').close()"
    assert "asyncio" not in _loaded(program)

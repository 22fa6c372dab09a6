"""Checks of style: names, no SQL in Python, generated text is current."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from penstock import states
from penstock.cli.admin import settings_page

# One worker reads all files, once.
pytestmark = pytest.mark.xdist_group("tidy")

TOP = Path(__file__).resolve().parents[2]
SOURCE = TOP / "src" / "penstock"
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "base"}
SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\s+(OR\s+\w+\s+)?INTO\b|\bUPDATE\s+\S+\s.*\bSET\b"
    r"|\bDELETE\s+FROM\b|\bCREATE\s+(UNIQUE\s+)?(TABLE|INDEX|VIEW|TRIGGER)\b",
    re.DOTALL,
)
# They expand the markers of statements into SQL.
MARKER_EXPANSION = {SOURCE / "db" / "statements.py", SOURCE / "db" / "tables.py"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function


def name_of(path: Path) -> str:
    return str(path.relative_to(TOP))


def python_files() -> list[Path]:
    return sorted(path for part in ("src", "tests", "bench") for path in (TOP / part).rglob("*.py"))


@cache
def modules() -> dict[Path, ast.Module]:
    """Return the product's own modules, parsed."""
    return {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def docstrings(tree: ast.Module) -> set[int]:
    """Return the identities of the docstring nodes."""
    ids = set()
    for node in ast.walk(tree):
        if isinstance(node, Documented) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                ids.add(id(first.value))
    return ids


def sql_literals(tree: ast.Module) -> Iterator[str]:
    """Return every string in this code that reads as an SQL statement."""
    explanations = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "x".join(
                str(part.value) for part in node.values if isinstance(part, ast.Constant)
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in explanations else node.value
        else:
            continue
        if SQL.search(text):
            yield text


def test_a_module_has_a_descriptive_name() -> None:
    paths = [path.relative_to(TOP) for path in python_files()]
    assert [str(path) for path in paths if VAGUE_NAMES & {path.stem, *path.parts}] == []


def test_a_module_has_a_docstring() -> None:
    assert [name_of(path) for path, tree in modules().items() if not ast.get_docstring(tree)] == []


def test_python_contains_no_sql_statements() -> None:
    assert modules().keys() >= MARKER_EXPANSION
    assert {
        name_of(path): literals
        for path, tree in modules().items()
        if path not in MARKER_EXPANSION and (literals := list(sql_literals(tree)))
    } == {}


def test_the_page_of_states_is_current() -> None:
    assert (TOP / "docs" / "states.md").read_text() == states.document(), (
        "run: .venv/bin/python -m penstock.states > docs/states.md"
    )


def test_the_page_of_settings_is_current() -> None:
    assert (TOP / "docs" / "settings.md").read_text() == settings_page.document(), (
        "run: .venv/bin/python -m penstock.cli.admin.settings_page > docs/settings.md"
    )


def test_the_lock_file_has_every_dependency() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements}
    lock = (TOP / "requirements.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    assert names - locked == set(), "run: make lock"


def test_the_lock_file_is_complete() -> None:
    """`make setup` installs the packages of the lock file and resolves nothing else."""
    result = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


# The client's claim is a wire claim with methods for its worker.
CLASSES_OF_ONE_NAME = {"Claim", "Claims"}


def test_a_public_class_name_occurs_once() -> None:
    names = Counter(
        name
        for file in SOURCE.rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {name for name, count in names.items() if count > 1} == CLASSES_OF_ONE_NAME

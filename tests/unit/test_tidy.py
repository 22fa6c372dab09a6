"""The style that a machine can check: sizes, names, no SQL in Python, generated text up to date."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import states

TOP = Path(__file__).resolve().parents[2]
SOURCE = TOP / "src" / "penstock"
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "base"}
SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\s+(OR\s+\w+\s+)?INTO\b|\bUPDATE\s+\S+\s.*\bSET\b"
    r"|\bDELETE\s+FROM\b|\bCREATE\s+(UNIQUE\s+)?(TABLE|INDEX|VIEW|TRIGGER)\b",
    re.DOTALL,
)
MODULES = sorted(SOURCE.rglob("*.py"))
# It turns the markers in statements into each database's own words, so it has to know them.
MARKER_EXPANSION = SOURCE / "db" / "statements.py"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function


def name_of(path: Path) -> str:
    return str(path.relative_to(TOP))


def python_files() -> list[Path]:
    return sorted(path for part in ("src", "tests", "bench") for path in (TOP / part).rglob("*.py"))


def docstrings(tree: ast.Module) -> set[int]:
    """The identities of the strings that only explain."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, Documented) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.add(id(first.value))
    return found


def sql_literals(source: str) -> Iterator[str]:
    """Every string in this code that reads as an SQL statement."""
    tree = ast.parse(source)
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


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_a_file_can_be_held_in_the_head(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= FILE_LINES_MAX


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_a_module_is_named_for_what_it_is(path: Path) -> None:
    assert not VAGUE_NAMES & {path.stem, *path.relative_to(TOP).parts}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_function_can_be_seen_at_once(path: Path) -> None:
    long = {
        node.name: (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, Function)
    }
    assert {name: size for name, size in long.items() if size > FUNCTION_LINES_MAX} == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path != MARKER_EXPANSION], ids=name_of
)
def test_sql_lives_in_named_statements_and_not_in_python(path: Path) -> None:
    assert list(sql_literals(path.read_text())) == []


@pytest.mark.parametrize(
    ("source", "is_sql"),
    [
        ('x = "SELECT id FROM runs"', True),
        ('x = f"SELECT {columns} FROM {table}"', True),
        ('x = "INSERT OR IGNORE INTO runs VALUES (1)"', True),
        ('x = "UPDATE runs SET state = 1"', True),
        ('x = "DELETE FROM runs"', True),
        ('x = "CREATE UNIQUE INDEX i ON runs (id)"', True),
        ('x = "BEGIN IMMEDIATE"', False),
        ('x = "select the runs to update from the list and set them"', False),
        ('def f():\n    """Runs UPDATE runs SET state = 1."""', False),
    ],
)
def test_the_search_for_sql_finds_statements_and_not_prose(source: str, is_sql: bool) -> None:
    assert bool(list(sql_literals(source))) == is_sql


def test_the_page_of_states_equals_its_source() -> None:
    assert (TOP / "docs" / "states.md").read_text() == states.document(), (
        "run: .venv/bin/python -m penstock.states > docs/states.md"
    )


def test_the_lock_has_every_dependency() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in wanted}
    lock = (TOP / "requirements.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    assert names - locked == set(), "run: make lock"

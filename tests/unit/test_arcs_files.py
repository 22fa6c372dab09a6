"""Declarations of arcs in TOML, in YAML, and beside Python functions."""

from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import penstock
from penstock.arcs.files import MARK, read_declarations, read_module
from penstock.arcs.spec import Arc, Input, Output, Parts, Retry, Workload
from penstock.client import worker
from penstock.config import load
from penstock.errors import Conflict, Invalid, Malformed, PenstockError
from penstock.schema.arcs import OnEmpty
from penstock.schema.arrivals import Late, TimeFrom

TOML = """
namespace = "shop"
project = "lake"

[arcs.clean]
description = "sorts"
inputs = ["raw", { dataset = "rates", namespace = "bank", subscribe = false }]
outputs = [{ dataset = "clean", interval = "PT1H", running_max = 2 }]
workload = ["sort", "{task}", "{output}"]
parts = "year={year}/month={month}"
on_empty = "skip"
retry = { tries = 5, back_off_seconds = 1 }

[arcs.total]
namespace = "books"
inputs = ["shop/clean", "s3://lake/raw/orders"]
outputs = ["totals"]
running_max = 1
workload = { function = "jobs.totals:run", timeout_seconds = 60, environment = { LEVEL = "3" } }
parts = { bytes_max = 1000, running_max = 2 }

[arrivals.raw]
location = "/data/in"
interval = "PT1H"
time = "event"
pattern = "{year}/{month}/{day}/{hour}"
late = "next"
start = 2026-11-15T00:00:00Z
"""
YAML = """
namespace: shop
project: lake
arcs:
  clean:
    description: sorts
    inputs:
      - raw
      - {dataset: rates, namespace: bank, subscribe: false}
    outputs:
      - {dataset: clean, interval: PT1H, running_max: 2}
    workload: [sort, "{task}", "{output}"]
    parts: year={year}/month={month}
    on_empty: skip
    retry: {tries: 5, back_off_seconds: 1}
  total:
    namespace: books
    inputs: [shop/clean, "s3://lake/raw/orders"]
    outputs: [totals]
    running_max: 1
    workload:
      function: jobs.totals:run
      timeout_seconds: 60
      environment: {LEVEL: "3"}
    parts: {bytes_max: 1000, running_max: 2}
arrivals:
  raw:
    location: /data/in
    interval: PT1H
    time: event
    pattern: "{year}/{month}/{day}/{hour}"
    late: next
    start: 2026-11-15T00:00:00Z
"""
CLEAN = Arc(
    name="clean",
    namespace="shop",
    project="lake",
    description="sorts",
    inputs=(Input(dataset="raw"), Input(dataset="rates", namespace="bank", subscribe=False)),
    outputs=(Output(dataset="clean", interval="PT1H", running_max=2),),
    workload=Workload(command=("sort", "{task}", "{output}")),
    parts=Parts(pattern="year={year}/month={month}"),
    on_empty=OnEmpty.SKIP,
    retry=Retry(tries=5, back_off_seconds=1),
)
TOTAL = Arc(
    name="total",
    namespace="books",
    project="lake",
    inputs=(
        Input(dataset="clean", namespace="shop"),
        Input(dataset="raw/orders", namespace="s3://lake"),
    ),
    outputs=(Output(dataset="totals"),),
    running_max=1,
    workload=Workload(function="jobs.totals:run", timeout_seconds=60, environment={"LEVEL": "3"}),
    parts=Parts(bytes_max=1000, running_max=2),
)
ARC = '[arcs.a]\ninputs = ["x"]\noutputs = ["y"]\nworkload = "m:f"\n'
ODD_NAME = '{ command = ["x"], environment = { "A=B" = "1" } }'


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(("name", "text"), [("a.toml", TOML), ("a.yaml", YAML), ("a.yml", YAML)])
def test_toml_and_yaml_are_equivalent(tmp_path: Path, name: str, text: str) -> None:
    found = read_declarations(write(tmp_path, name, text))
    assert found.arcs == (CLEAN, TOTAL)
    (arrival,) = found.arrivals
    assert (arrival.namespace, arrival.dataset, arrival.location) == ("shop", "raw", "/data/in")
    assert (arrival.time, arrival.late) == (TimeFrom.EVENT, Late.NEXT)
    assert arrival.start == "2026-11-15T00:00:00+00:00"


def test_without_a_namespace_an_arc_is_in_the_default_one(tmp_path: Path) -> None:
    (arc,) = read_declarations(write(tmp_path, "a.toml", ARC)).arcs
    assert (arc.namespace, arc.project, arc.version) == ("default", "default", "1")


def test_the_settings_file_may_declare_arcs_beside_the_settings(tmp_path: Path) -> None:
    settings = 'port = 5001\nnamespace = "shop"\n[collections.maps]\ndataset = "maps"\n'
    path = write(tmp_path, "penstock.toml", settings + ARC)
    (arc,) = read_declarations(path).arcs
    assert arc.namespace == "shop"
    loaded = load({}, {"HOME": str(tmp_path)}, tmp_path)
    assert loaded.settings.port == 5001
    assert "namespace" not in loaded.origins


def test_where_workloads_run_is_a_setting(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "PENSTOCK_EXECUTOR": "dask://scheduler:8786"}
    settings = load({"arc_concurrency": 16}, home, tmp_path).settings
    assert (settings.executor, settings.arc_concurrency) == ("dask://scheduler:8786", 16)
    assert load({}, {"HOME": str(tmp_path)}, tmp_path).settings.executor == "local"
    with pytest.raises(Invalid, match="local or dask://"):
        load({"executor": "yarn"}, home, tmp_path)


REFUSED: list[tuple[str, str, type[PenstockError], str]] = [
    ("a.toml", "x = ", Malformed, "is not TOML"),
    ("a.yaml", "arcs: [", Malformed, "is not YAML"),
    ("a.yaml", "arcs:\n  a: {}\n  a: {}\n", Malformed, "the key 'a' stands twice"),
    ("a.yaml", "- 1\n", Invalid, "there is no arc in"),
    ("a.toml", "", Invalid, r"begin an arc with: \[arcs.NAME\]"),
    ("a.toml", "arcs = 3", Invalid, "arcs is not a table"),
    ("a.toml", "arcs.a = 3", Invalid, "arcs.a is not a table"),
    ("a.toml", f"arc = 3\n{ARC}", Invalid, "'arc' is unknown; did you mean arcs?"),
    ("a.toml", f"{ARC}input = 3\n", Invalid, r"\[arcs.a\]: there is no 'input'; did you mean inp"),
    ("a.toml", f"{ARC}running_max = 0\n", Invalid, r"\[arcs.a\]: Expected `int` >= 1"),
    ("a.toml", f"{ARC}running_max = '1'\n", Invalid, r"Expected `int \| null`|Expected `int`"),
    ("a.toml", ARC.replace("m:f", "f"), Invalid, "write module:function"),
    ("a.toml", ARC.replace('["x"]', "[]"), Invalid, "subscribes to nothing"),
    ("a.toml", ARC.replace('["x"]', '"x"'), Invalid, "Expected `array`"),
    ("a.toml", ARC.replace('["x"]', '["x", "x"]'), Invalid, "has input default/x twice"),
    ("a.toml", ARC.replace('["y"]', '["y", "default/y"]'), Invalid, "has output default/y twice"),
    ("a.toml", ARC.replace('"m:f"', '[""]'), Invalid, "begins with nothing"),
    ("a.toml", ARC.replace('"m:f"', '["x", "\\u0000"]'), Invalid, "has a NUL character"),
    (
        "a.toml",
        ARC.replace('"m:f"', '["x", "--lot={lot}"]'),
        Invalid,
        r"has \{lot\} inside of '--lot=",
    ),
    ("a.toml", ARC.replace('"m:f"', '["x", "{output}/y"]'), Invalid, "PENSTOCK_OUTPUT"),
    ("a.toml", ARC.replace('"m:f"', ODD_NAME), Invalid, "cannot set 'A=B' in the environment"),
    ("a.toml", f"{ARC}parts = ''\n", Invalid, "pattern '' .*names no part"),
    ("a.toml", f"{ARC}parts = '//'\n", Invalid, "pattern '//' .*names no part"),
    ("a.toml", f"{ARC}parts = '{{a}}{{a}}'\n", Invalid, r"has \{a\} twice"),
    ("a.toml", f"{ARC}parts = '{{1}}'\n", Invalid, r"has \{1\}; begin a field with a letter"),
    ("a.toml", '[arrivals.x]\nlocation = "in"\n', Invalid, r"\[arrivals.x\]: .*a whole path"),
]


def test_command_may_use_shell_variables(tmp_path: Path) -> None:
    text = ARC.replace('"m:f"', """["sh", "-c", 'for lot in 1 2; do echo ${lot}; done', "{lot}"]""")
    [arc] = read_declarations(write(tmp_path, "a.toml", text)).arcs
    assert arc.workload.command[2:] == ("for lot in 1 2; do echo ${lot}; done", "{lot}")


@pytest.mark.parametrize(("name", "text", "kind", "told"), REFUSED)
def test_errors_name_the_file_and_table(
    tmp_path: Path, name: str, text: str, kind: type[PenstockError], told: str
) -> None:
    with pytest.raises(kind, match=told) as refused:
        read_declarations(write(tmp_path, name, text))
    assert name in str(refused.value)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="name another file"):
        read_declarations(tmp_path / "none.toml")


def test_two_arcs_of_one_name_are_refused(tmp_path: Path) -> None:
    again = '[arcs.b]\nname = "a"\ninputs = ["x"]\noutputs = ["y"]\nworkload = "m:f"\n'
    with pytest.raises(Conflict, match="default/a twice"):
        read_declarations(write(tmp_path, "a.toml", ARC + again))


@penstock.arc(
    namespace="shop",
    inputs=["raw", {"dataset": "rates", "subscribe": False}],
    outputs=["clean"],
    parts="day={day}",
    retry={"tries": 2},
    timeout_seconds=30,
)
def shout(text: str) -> str:
    """Make it loud.

    Very loud.
    """
    return text.upper()


def module(**members: object) -> ModuleType:
    made = ModuleType(__name__)
    vars(made).update(members)
    return made


def test_a_function_can_be_an_arc_and_stays_a_function() -> None:
    assert shout("a") == "A"
    assert MARK == worker.MARK
    found = read_module(module(shout=shout, again=shout, other=len))
    (arc,) = found.arcs
    assert arc == Arc(
        name="shout",
        namespace="shop",
        description="Make it loud.",
        inputs=(Input(dataset="raw"), Input(dataset="rates", subscribe=False)),
        outputs=(Output(dataset="clean"),),
        workload=Workload(function=f"{__name__}:shout", timeout_seconds=30),
        parts=Parts(pattern="day={day}"),
        retry=Retry(tries=2),
    )
    assert msgspec.json.encode(arc)


def test_an_arc_of_another_module_is_not_declared_twice() -> None:
    other = ModuleType("other")
    vars(other)["shout"] = shout
    with pytest.raises(Invalid, match=r"put @penstock\.arc"):
        read_module(other)


def test_unimportable_function_is_no_arc() -> None:
    def inner() -> None:
        raise AssertionError("never called")

    with pytest.raises(Invalid, match="at the top of a module"):
        penstock.arc(inputs=["a"], outputs=["b"])(inner)


def test_impossible_arc_is_refused_with_its_function() -> None:
    @penstock.arc(inputs=[], outputs=["b"])
    class Marked:
        __qualname__ = "marked"

    Marked.__module__ = __name__
    with pytest.raises(Invalid, match="Marked: arc default/Marked subscribes to nothing"):
        read_module(module(marked=Marked))


def test_number_in_place_of_text_needs_quotes(tmp_path: Path) -> None:
    path = tmp_path / "arcs.yaml"
    path.write_text(
        "arcs:\n  a:\n    version: 1\n    inputs: [raw]\n    outputs: [made]\n"
        "    workload: [work]\n"
    )
    with pytest.raises(Invalid, match=r"at `\$\.version`; put it in quotes"):
        read_declarations(path)

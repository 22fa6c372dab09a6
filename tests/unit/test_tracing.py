"""Disabled traces cost nothing, and without the package the error names the cause."""

import subprocess
import sys

import pytest

from penstock.clock import system_clock
from penstock.errors import Invalid
from penstock.telemetry import tracing
from tests.spans import collecting


def test_traces_are_off_by_default_and_load_nothing() -> None:
    """That includes `penstock up`, where everything runs in one process."""
    script = (
        "import sys, penstock.cli.admin.up\n"
        "from penstock.telemetry import tracing\n"
        "with tracing.on('off', ''), tracing.span('x', lot='1'):\n"
        "    tracing.note('y', lot='1', began=0)\n"
        "    tracing.fail('z')\n"
        "    assert not tracing.header()\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_disabled_spans_are_one_shared_object() -> None:
    assert tracing.span("one", lot="1") is tracing.span("two", lot="2")
    assert not tracing.is_on()


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "penstock.telemetry.otlp", None)
    with pytest.raises(Invalid, match=r"penstock\[otel\]"), tracing.on("otlp", "here"):
        pytest.fail("it is not on")


def test_a_task_runs_without_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "penstock.telemetry.otlp", None)
    monkeypatch.setattr(tracing, "_is_missing", False)
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with tracing.span("arc.task", under=header):
        assert not tracing.is_on()


def test_two_installations_have_separate_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        for name, text in collector.variables.items():
            monkeypatch.setenv(name, text)
        for scope in ("here", "here", "there"):
            with tracing.on("otlp", scope), tracing.span("x", lot="bid0000000001"):
                tracing.note("y", lot="20261115PT1H00", began=system_clock())
        spans = collector.spans()
    one, again, other = [span.trace for span in spans if span.name == "x"]
    assert one == again
    assert one != other
    # Work on another lot is in that lot's trace, with a link to its cause.
    linked = [span.links for span in spans if span.name == "y"]
    assert linked == [[f"{span.trace}-{span.id}"] for span in spans if span.name == "x"]

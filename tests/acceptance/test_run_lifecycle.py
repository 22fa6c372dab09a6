"""Run states and dataset versions: each scenario, reported in each way.

JobA produces DatasetX; JobB consumes DatasetX and produces DatasetY; JobC consumes DatasetY and
produces DatasetZ; JobP is a parent.
"""

from collections.abc import Callable

import pytest

from tests.acceptance.calls import Calls
from tests.acceptance.lifecycles import DeclaredCalls, DynamicCalls, Events, Lifecycle, Outcome, Run

X, Y, Z = "DatasetX", "DatasetY", "DatasetZ"


@pytest.fixture(params=[DynamicCalls, DeclaredCalls, Events], ids=["dynamic", "declared", "events"])
def life(request: pytest.FixtureRequest, calls: Calls) -> Lifecycle:
    way: Callable[[Calls], Lifecycle] = request.param
    return way(calls)


@pytest.fixture
def then(calls: Calls) -> Outcome:
    return Outcome(calls)


def test_produce_a_new_dataset(life: Lifecycle, then: Outcome) -> None:
    run1 = life.run_exists("JobA", writes=[X])
    life.succeeds(run1)

    assert then.state(run1) == "COMPLETED"
    [shape] = then.job_versions("JobA")
    assert [d["name"] for d in shape["outputs"]] == [X]
    assert shape["latestRun"]["id"] == run1.id
    assert then.versions(X) == [1]
    assert then.current(X) == 1
    assert then.produced(run1) == {X: 1}
    assert then.consumed(run1) == {}


def test_consume_a_new_dataset(life: Lifecycle, then: Outcome) -> None:
    run1 = life.run_exists("JobB", reads=[X])
    life.succeeds(run1)

    assert then.state(run1) == "COMPLETED"
    [shape] = then.job_versions("JobB")
    assert [d["name"] for d in shape["inputs"]] == [X]
    assert then.versions(X) == [1]
    assert then.current(X) == 1
    assert then.maker(X, 1) is None
    assert then.consumed(run1) == {X: 1}
    assert then.produced(run1) == {}


def test_successful_job_chain_produce_and_consume_new_datasets(
    life: Lifecycle, then: Outcome
) -> None:
    a_run1 = life.run_exists("JobA", writes=[X])
    life.succeeds(a_run1)
    b_run1 = life.run_exists("JobB", reads=[X], writes=[Y])
    life.succeeds(b_run1)

    assert then.versions(X) == [1]
    assert then.current(X) == 1
    assert then.produced(a_run1) == {X: 1}
    assert then.versions(Y) == [1]
    assert then.current(Y) == 1
    assert then.consumed(b_run1) == {X: 1}
    assert then.produced(b_run1) == {Y: 1}


def test_successful_job_chain_produce_and_consume_existing_datasets(
    life: Lifecycle, then: Outcome
) -> None:
    life.dataset_exists(X)
    life.dataset_exists(Y)
    a_run1 = life.run_exists("JobA", writes=[X])
    b_run1 = life.run_exists("JobB", reads=[X], writes=[Y])
    assert (then.versions(X), then.versions(Y)) == ([1], [1])

    life.succeeds(a_run1)
    life.succeeds(b_run1)

    assert then.versions(X) == [1, 2]
    assert then.current(X) == 2
    assert then.produced(a_run1) == {X: 2}
    assert then.versions(Y) == [1, 2]
    assert then.current(Y) == 2
    assert then.consumed(b_run1) == {X: 2}
    assert then.produced(b_run1) == {Y: 2}


def _chain_has_run_once(life: Lifecycle, then: Outcome) -> None:
    a_run1 = life.run_exists("JobA", writes=[X])
    life.succeeds(a_run1)
    b_run1 = life.run_exists("JobB", reads=[X], writes=[Y])
    life.succeeds(b_run1)
    assert then.produced(a_run1) == {X: 1}
    assert then.consumed(b_run1) == {X: 1}
    assert then.produced(b_run1) == {Y: 1}


def test_failed_job_chain_on_existing_datasets_stops(life: Lifecycle, then: Outcome) -> None:
    _chain_has_run_once(life, then)

    a_run2 = life.run_exists("JobA", writes=[X])
    life.fails(a_run2)

    assert then.state(a_run2) == "FAILED"
    assert then.versions(X) == [1, 2]
    assert then.current(X) == 1
    assert then.produced(a_run2) == {X: 2}
    assert then.versions(Y) == [1]
    assert then.current(Y) == 1


def test_failed_job_chain_on_existing_datasets_continues(life: Lifecycle, then: Outcome) -> None:
    _chain_has_run_once(life, then)

    a_run2 = life.run_exists("JobA", writes=[X])
    life.fails(a_run2)
    b_run2 = life.run_exists("JobB", reads=[X], writes=[Y])
    life.succeeds(b_run2)

    assert then.versions(X) == [1, 2]
    assert then.current(X) == 1
    assert then.produced(a_run2) == {X: 2}
    assert then.consumed(b_run2) == {X: 1}
    assert then.produced(b_run2) == {Y: 2}
    assert then.current(Y) == 2


def _parent_and_datasets_exist(life: Lifecycle) -> Run:
    for name in (X, Y, Z):
        life.dataset_exists(name)
    return life.run_exists("JobP")


def test_parent_jobs_with_successful_child_jobs(life: Lifecycle, then: Outcome) -> None:
    p_run1 = _parent_and_datasets_exist(life)

    b_run1 = life.run_exists("JobB", reads=[X], writes=[Y], parent=p_run1)
    life.succeeds(b_run1)
    life.succeeds(p_run1)
    c_run1 = life.run_exists("JobC", reads=[Y], writes=[Z])
    life.succeeds(c_run1)

    assert then.parent(b_run1) == ("JobP", p_run1.id)
    assert (then.state(b_run1), then.state(p_run1)) == ("COMPLETED", "COMPLETED")
    assert then.versions(Y) == [1, 2]
    assert then.current(Y) == 2
    assert then.consumed(b_run1) == {X: 1}
    assert then.produced(b_run1) == {Y: 2}
    assert then.consumed(c_run1) == {Y: 2}
    assert then.produced(c_run1) == {Z: 2}


def test_parent_jobs_with_failed_child_jobs(life: Lifecycle, then: Outcome) -> None:
    """A failed run never changes the current version: JobC consumes V1, which is still current."""
    p_run1 = _parent_and_datasets_exist(life)

    b_run1 = life.run_exists("JobB", reads=[X], writes=[Y], parent=p_run1)
    life.fails(b_run1)
    life.succeeds(p_run1)
    c_run1 = life.run_exists("JobC", reads=[Y], writes=[Z])
    life.succeeds(c_run1)

    assert then.parent(b_run1) == ("JobP", p_run1.id)
    assert (then.state(b_run1), then.state(p_run1)) == ("FAILED", "COMPLETED")
    assert then.versions(Y) == [1, 2]
    assert then.current(Y) == 1
    assert then.consumed(b_run1) == {X: 1}
    assert then.produced(b_run1) == {Y: 2}
    assert then.consumed(c_run1) == {Y: 1}
    assert then.produced(c_run1) == {Z: 2}


def test_parent_jobs_fails(life: Lifecycle, then: Outcome) -> None:
    p_run1 = _parent_and_datasets_exist(life)

    b_run1 = life.run_exists("JobB", reads=[X], writes=[Y], parent=p_run1)
    life.succeeds(b_run1)
    life.fails(p_run1)
    c_run1 = life.run_exists("JobC", reads=[Y], writes=[Z])
    life.succeeds(c_run1)

    assert then.parent(b_run1) == ("JobP", p_run1.id)
    assert (then.state(b_run1), then.state(p_run1)) == ("COMPLETED", "FAILED")
    assert then.versions(Y) == [1, 2]
    assert then.current(Y) == 2
    assert then.consumed(b_run1) == {X: 1}
    assert then.produced(b_run1) == {Y: 2}
    assert then.consumed(c_run1) == {Y: 2}
    assert then.produced(c_run1) == {Z: 2}

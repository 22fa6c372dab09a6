"""The closure equals the one of a model with all runs, for any history."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import pytest

from penstock.locks.commands import RegisterLots, ResubmitLots
from penstock.operations.replays.service import Replays
from tests.contract.lot_site import open_site
from tests.contract.replay_site import ReplaySite, names

JOBS = 6
LOTS = 12
ACTS = 14  # on each lot


@dataclass
class Model:
    """A model of what each run on one lot has read and made, by version."""

    reads: Mapping[int, list[str]]
    there: dict[str, str] = field(default_factory=dict)  # the version of each dataset
    sources: dict[str, frozenset[str]] = field(default_factory=dict)  # itself included
    last: dict[int, frozenset[str]] = field(default_factory=dict)  # all that a job's last run read

    def publish(self, dataset: str, version: str, read: frozenset[str]) -> None:
        self.there[dataset] = version
        self.sources[version] = read | {version}

    def run(self, job: int, version: str) -> None:
        read = frozenset().union(*(self.sources[self.there[name]] for name in self.reads[job]))
        self.last[job] = read
        self.publish(f"d{job}", version, read)

    def stands_on(self, version: str) -> set[int]:
        """Return the jobs whose last run read a version, or made it."""
        makers = {job for job in self.last if self.there[f"d{job}"] == version}
        return {job for job, read in self.last.items() if version in read} | makers


@pytest.mark.parametrize("seed", range(3))
def test_closure_equals_the_model(database_url: str, seed: int) -> None:
    chance = Random(seed)
    datasets = ["raw", *(f"d{job}" for job in range(JOBS))]
    reads = {job: chance.sample(datasets[: job + 1], min(job + 1, 2)) for job in range(JOBS)}
    with open_site(database_url) as opened:
        site = ReplaySite(opened, Replays(opened.catalog, lambda: opened.now))
        for job, inputs in reads.items():
            opened.wire(f"j{job}", inputs, [f"d{job}"])
        for lot in (f"lot{number}" for number in range(LOTS)):
            _check(site, lot, _history(site, lot, Model(reads), chance))


def _history(site: ReplaySite, lot: str, model: Model, chance: Random) -> Model:
    """Apply random acts to a lot, in the database and in the model."""
    for act in range(ACTS):
        job = chance.randrange(-1, JOBS)
        if act == 0 or job < 0:
            site.site.do(RegisterLots("ns", "raw", (lot,), "ann", renew=True))
            model.publish("raw", str(site.output("raw", lot).version_id), frozenset())
        elif all(name in model.there for name in model.reads[job]):
            if job in model.last:
                site.site.do(ResubmitLots("ann", "once more", "ns", f"j{job}", (lot,)))
            site.done(f"j{job}", lot)
            model.run(job, str(site.output(f"d{job}", lot).version_id))
    return model


def _check(site: ReplaySite, lot: str, model: Model) -> None:
    """Compare the closures of every version."""
    for version, dataset in _versions(site, lot, model).items():
        found = site.plan(dataset=dataset, lot=lot, version=version)
        wanted = {f"j{job} {lot}" for job in model.stands_on(version)}
        assert names(found) == wanted
        for step in found.steps:
            earlier = {found.steps[number - 1].job for number in step.before}
            makers = {f"j{name[1:]}" for name in model.reads[int(step.job[1:])] if name != "raw"}
            assert earlier == makers & {each.job for each in found.steps}
            assert all(number < step.number for number in step.before)


def _versions(site: ReplaySite, lot: str, model: Model) -> dict[str, str]:
    """Return all versions of a lot, with their datasets."""
    with site.site.catalog.read() as tx:
        rows = tx.fetch("replay_versions", ids=list(model.sources))
        called = {
            i: name for i, _, name in tx.fetch("read_dataset_names", ids=[r[1] for r in rows])
        }
    assert len(rows) == len(model.sources)
    return {row[0]: called[row[1]] for row in rows}

"""What always holds of the catalog."""

from typing import Final

from penstock.provenance.invariants.invariant import Invariant, by_statement

INVARIANTS: Final[tuple[Invariant, ...]] = (
    by_statement(
        "current-versions",
        "a dataset's current version is of a completed run, or was declared",
        "broken_current_versions",
        "dataset {}/{} has for its current version {}, which is {}",
    ),
    by_statement(
        "newest-versions",
        "a dataset's current version is the one published last",
        "broken_newest_versions",
        "dataset {}/{} has for its current version {}, and another was published later",
    ),
    by_statement(
        "pinned-versions",
        "what runs read and wrote is there, and what a run wrote is its own",
        "broken_pins",
        "run {} has as {} of dataset {} version {}, which is not there or not its own",
    ),
    by_statement(
        "run-counts",
        "jobs count their runs and versions rightly",
        "broken_run_counts",
        "job {}/{} counts {} runs and {} versions, and there are others",
    ),
    by_statement(
        "version-counts",
        "datasets count their versions rightly and know the latest",
        "broken_version_counts",
        "dataset {}/{} counts {} versions, the latest V{}, and there are others",
    ),
    by_statement(
        "latest-runs",
        "jobs show their newest run and its state",
        "broken_latest_runs",
        "job {}/{} shows run {} as its newest, {}, and that is not so",
    ),
    by_statement(
        "tallies",
        "namespaces count their visible datasets and jobs rightly",
        "broken_tallies",
        "{} of namespace {} in state {!r} are counted as {}, and there are {}",
    ),
    by_statement(
        "event-counts",
        "events are counted rightly by the hour",
        "broken_event_counts",
        "in the hour {}, events {} are counted as {}, and there are {}",
    ),
    by_statement(
        "search",
        "every dataset and job is found by search as what it is",
        "broken_search_docs",
        "{} {}/{} is not found as it is, or is no more",
    ),
)

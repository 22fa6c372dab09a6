"""Processes forked from a template process that has imported its modules, so they start at once.

The template keeps the environment it was started with, whatever a test sets later. Tests with such
processes are in the group `doomed` of pytest-xdist, so that they all share one template.
"""

from multiprocessing import get_context

FORKED = get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.acceptance.doomed_engine",
        "tests.contract.arrival_process",
        "tests.contract.doomed_worker",
    ]
)

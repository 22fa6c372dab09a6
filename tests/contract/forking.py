"""Processes that are forked from one which has imported what they need: they begin at once.

That one keeps the environment it was started with, whatever a test sets later. Tests with such
processes are in the group `doomed` of pytest-xdist, so that one is enough for all of them.
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

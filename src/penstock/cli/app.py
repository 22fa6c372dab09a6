"""All commands: finds the one asked for, runs it, and turns errors to exit codes."""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, UnusedCliTokensError

from penstock import __version__
from penstock.cli import exit_codes
from penstock.cli.output import complain
from penstock.cli.stdout import heard
from penstock.errors import PenstockError

# Set to see where an unexpected error comes from.
TRACEBACK_VARIABLE = "PENSTOCK_TRACEBACK"

_SERVER = Group("Server", sort_key=1)
_LOOK = Group("Look", sort_key=2)
_CHANGE = Group("Change", sort_key=3)
_OPTIONS = Group("Options", sort_key=9)

# Modules are imported when their command is run, so that every command starts fast.
COMMANDS: tuple[tuple[Group, str, str, str], ...] = (
    (
        _SERVER,
        "up",
        "cli.admin.up",
        "Run everything in one process: server, ingest daemons, engine of arcs.",
    ),
    (_SERVER, "serve", "cli.admin.serve", "Run the server until it is told to stop."),
    (_SERVER, "config", "cli.admin.config", "Show the settings and where each value came from."),
    (_SERVER, "keys", "cli.admin.keys", "Make, list and revoke API keys."),
    (_SERVER, "check", "cli.admin.check", "Ask of everything that always holds whether it does."),
    (
        _SERVER,
        "prune",
        "cli.admin.prune",
        "Delete old events, runs and versions that nothing needs.",
    ),
    (
        _SERVER,
        "catalog",
        "cli.admin.catalog",
        "Mend times in the catalog that are ahead of the clock.",
    ),
    (
        _SERVER,
        "demo",
        "demo.demo",
        "Start a server with a small data platform in it and look around.",
    ),
    (
        _LOOK,
        "lineage",
        "cli.catalog.lineage",
        "Draw what a dataset or job is made from, and what is made from it.",
    ),
    (
        _LOOK,
        "datasets",
        "cli.catalog.datasets",
        "List and show datasets and their versions; tag, delete, restore.",
    ),
    (
        _LOOK,
        "jobs",
        "cli.catalog.jobs",
        "List and show jobs, their versions and runs; delete, restore.",
    ),
    (
        _LOOK,
        "lots",
        "cli.lots.lots",
        "List, show, register and hold the lots of a dataset; find gaps.",
    ),
    (
        _LOOK,
        "provenance",
        "cli.lots.provenance",
        "Say what a lot was made from, down to deposits, files and digests.",
    ),
    (
        _LOOK,
        "verify",
        "cli.lots.verify",
        "Read the bytes of lots again, and compare them with their manifests.",
    ),
    (
        _LOOK,
        "locks",
        "cli.lots.locks",
        "List what is being worked on, by whom, and what that locks.",
    ),
    (_LOOK, "why", "cli.lots.why", "Say what stops a job from working on a lot."),
    (_LOOK, "runs", "cli.catalog.runs", "List and show runs, and the runs behind a run."),
    (
        _LOOK,
        "namespaces",
        "cli.catalog.namespaces",
        "List namespaces; let the runs of one write another's datasets.",
    ),
    (
        _LOOK,
        "events",
        "cli.catalog.events",
        "List events as they were received; follow what happens to lots.",
    ),
    (_LOOK, "search", "cli.catalog.search", "Find datasets and jobs by words."),
    (_LOOK, "stats", "cli.catalog.stats", "Count events, jobs, datasets and sources over time."),
    (_LOOK, "audit", "cli.admin.audit", "List what administrators did."),
    (_CHANGE, "run", "cli.lots.run", "Claim a lot of a job and run a command on it."),
    (
        _CHANGE,
        "work",
        "cli.lots.work",
        "List what a job has to do; resubmit, hold, release, prioritize lots.",
    ),
    (
        _CHANGE,
        "arcs",
        "cli.arcs.arcs",
        "Declare arcs, run them, see where they stand; clean, sync, backfill.",
    ),
    (
        _CHANGE,
        "objects",
        "cli.admin.objects",
        "Find and remove objects in the store that nothing lists.",
    ),
    (
        _CHANGE,
        "arrivals",
        "cli.arcs.arrivals",
        "List and show where objects arrive that become lots; delete one.",
    ),
    (
        _CHANGE,
        "replay",
        "cli.arcs.replay",
        "Make again what was made from a bad lot, in order; show, watch, pause.",
    ),
    (
        _CHANGE,
        "quality",
        "cli.lots.quality",
        "Show what checks said about lots; accept a lot that failed them.",
    ),
    (_CHANGE, "hold", "cli.lots.hold", "Stop a job, or all jobs of a dataset."),
    (_CHANGE, "unhold", "cli.lots.unhold", "Let a held job, or the jobs of a held dataset, go on."),
    (
        _CHANGE,
        "subscribers",
        "cli.admin.subscribers",
        "Say who is told of what happens to lots: webhooks, backends.",
    ),
    (
        _CHANGE,
        "ingest",
        "cli.ingest.ingest",
        "Submit batches, follow them, work on them; hold, resume, delete.",
    ),
    (_CHANGE, "emit", "cli.catalog.emit", "Send OpenLineage events from a file."),
)


def make_app() -> App:
    """The command with all its subcommands."""
    app = App(
        name="penstock",
        help="The control plane of a data platform: who made what from what, and what is next.",
        help_format="plaintext",
        help_epilogue=exit_codes.EXPLANATION,
        version=__version__,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    for flag in ("--help", "--version"):
        app[flag].group = _OPTIONS
    for order, (group, name, module, text) in enumerate(COMMANDS):
        app.command(f"penstock.{module}:app", name=name, help=text, group=group, sort_key=order)
    return app


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default the one of this process, and give its exit code."""
    try:
        with heard():
            outcome = make_app()(list(sys.argv[1:] if arguments is None else arguments))
    except CycloptsError as error:
        more = " ".join(("penstock", *_chain(error), "--help"))
        complain(f"{_words(error)} `{more}` says more.")
        return exit_codes.USAGE
    except PenstockError as error:
        complain(str(error))
        return exit_codes.exit_code(error)
    except BrokenPipeError:  # whoever read our output has enough of it
        return exit_codes.FAILED
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        complain(
            f"unexpected {type(error).__name__}: {_in_one_line(error)}; this is a bug, "
            f"{TRACEBACK_VARIABLE}=1 shows where"
        )
        return exit_codes.FAILED
    return outcome if isinstance(outcome, int) else exit_codes.DONE


def _words(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"The command has no place for {error.unused_tokens[0]!r}."
    return _in_one_line(error)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _chain(error: CycloptsError) -> Sequence[str]:
    return getattr(error, "command_chain", None) or ()

"""All commands: find one, run it, and turn its errors into exit codes."""

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from cyclopts import App, CycloptsError, Group, UnusedCliTokensError

from penstock import __version__
from penstock.cli import exit_codes
from penstock.cli.output import complain
from penstock.cli.stdout import checked_stdout
from penstock.errors import PenstockError

# Set this to see the traceback of an unexpected error.
TRACEBACK_VARIABLE = "PENSTOCK_TRACEBACK"

_SERVER = Group("Server", sort_key=1)
_LOOK = Group("Look", sort_key=2)
_CHANGE = Group("Change", sort_key=3)
_OPTIONS = Group("Options", sort_key=9)


class Entry(NamedTuple):
    """A command in a module of its own name, which is imported when the command runs."""

    group: Group
    module: str
    help: str

    @property
    def name(self) -> str:
        """The word to type."""
        return self.module.rpartition(".")[2]


COMMANDS = (
    Entry(_SERVER, "cli.admin.up", "Run server, ingest workers and arc engine in one process."),
    Entry(_SERVER, "cli.admin.serve", "Run the server."),
    Entry(_SERVER, "cli.admin.config", "Show the settings and their origins."),
    Entry(_SERVER, "cli.admin.keys", "Create, list, limit and revoke API keys."),
    Entry(_SERVER, "cli.admin.check", "Check all data invariants."),
    Entry(_SERVER, "cli.admin.prune", "Delete old history that is no longer needed."),
    Entry(_SERVER, "cli.admin.catalog", "Correct times in the catalog that are in the future."),
    Entry(_SERVER, "demo.demo", "Start a server with a small data platform and show it."),
    Entry(_LOOK, "cli.catalog.lineage", "Draw the origin and the uses of a dataset or job."),
    Entry(_LOOK, "cli.catalog.datasets", "List, show, create, tag, hold, delete datasets."),
    Entry(_LOOK, "cli.catalog.jobs", "List, show, wire, hold, delete jobs."),
    Entry(_LOOK, "cli.lots.lots", "List, show, register, hold, remove lots; find gaps."),
    Entry(_LOOK, "cli.lots.provenance", "Show what a lot was made from, down to files."),
    Entry(_LOOK, "cli.lots.verify", "Compare the bytes of lots with their manifests."),
    Entry(_LOOK, "cli.lots.claims", "List claims and the lots that they lock; end a claim."),
    Entry(_LOOK, "cli.lots.why", "Show what stops a job from processing a lot."),
    Entry(_LOOK, "cli.catalog.runs", "List and show runs, and the runs before a run."),
    Entry(_LOOK, "cli.catalog.namespaces", "List, create, grant namespaces."),
    Entry(_LOOK, "cli.catalog.events", "List received events; follow events of lots."),
    Entry(_LOOK, "cli.catalog.search", "Find datasets, jobs and other things."),
    Entry(_LOOK, "cli.catalog.stats", "Count events, jobs, datasets and sources over time."),
    Entry(_LOOK, "cli.admin.audit", "List the actions of administrators."),
    Entry(_CHANGE, "cli.lots.run", "Claim a lot of a job and run a command on it."),
    Entry(_CHANGE, "cli.lots.work", "List, hold, release, retry, resubmit a job's work."),
    Entry(_CHANGE, "cli.arcs.arcs", "Declare, start, show, clean arcs."),
    Entry(_CHANGE, "cli.arcs.backfills", "Make failed and missing lots of an arc."),
    Entry(_CHANGE, "cli.arcs.replays", "Make again everything made from bad lots, in order."),
    Entry(_CHANGE, "cli.arcs.arrivals", "List, show, delete the places where objects arrive."),
    Entry(_CHANGE, "cli.admin.objects", "Remove orphaned objects from the object store."),
    Entry(_CHANGE, "cli.lots.quality", "Show the results of checks; accept a failed lot."),
    Entry(_CHANGE, "cli.admin.subscribers", "Manage the webhooks and backends that get events."),
    Entry(_CHANGE, "cli.ingest.ingest", "Submit, follow, resume, hold, delete batches."),
    Entry(_CHANGE, "cli.catalog.emit", "Send OpenLineage events from a file."),
)


def make_app() -> App:
    """Build the command with all its subcommands."""
    app = App(
        name="penstock",
        help="The control plane of a data platform: lineage, locks, arcs and ingest.",
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
    for order, command in enumerate(COMMANDS):
        app.command(
            f"penstock.{command.module}:app",
            name=command.name,
            help=command.help,
            group=command.group,
            sort_key=order,
        )
    return app


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of this process, and return its exit code."""
    try:
        with checked_stdout():
            outcome = make_app()(list(sys.argv[1:] if arguments is None else arguments))
    except CycloptsError as error:
        chain: Sequence[str] = getattr(error, "command_chain", None) or ()
        complain(f"{_text(error)} See `{' '.join(('penstock', *chain, '--help'))}`.")
        return exit_codes.USAGE
    except PenstockError as error:
        complain(str(error))
        return exit_codes.exit_code(error)
    except BrokenPipeError:  # the reader of the output has closed the pipe
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


def _text(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"Unexpected argument {error.unused_tokens[0]!r}."
    return _in_one_line(error)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())

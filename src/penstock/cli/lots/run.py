"""`penstock run`: a command under a claim."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import App, Parameter
from msgspec import Struct

from penstock.arcs.spec import variable_names
from penstock.cli import exit_codes
from penstock.cli.lots.run_command import Ended, Signals, run_command
from penstock.cli.options import OPTIONS, Inputs, Namespace, Options, Outputs, option
from penstock.cli.output import complain, note, write_json
from penstock.cli.targets import job_or_new
from penstock.client import ApiError, Claim, ClaimLost, Claims, Client, Unreachable
from penstock.client.names import read_name
from penstock.errors import Conflict, Invalid
from penstock.schema.catalog import EntityId
from penstock.schema.locks import NoWorkReason, Wiring

Locations = Mapping[EntityId, str]


def read_locations(texts: Sequence[str], wiring: Wiring) -> dict[EntityId, str]:
    """Read `--location DATASET=PATH` options; each dataset must be one of the job's."""
    datasets = [*wiring.inputs, *wiring.outputs]
    locations = {}
    for text in texts:
        dataset, equals, location = text.partition("=")
        if not equals or not location:
            raise Invalid(f"--location {text!r} has no path; write DATASET=PATH")
        name = read_name(dataset, wiring.namespace)
        if name not in datasets:
            names = ", ".join(f"{each.namespace}/{each.name}" for each in datasets)
            raise Invalid(f"--location: {dataset!r} is no dataset of this job, which has {names}")
        locations[name] = location
    return locations


class Environment:
    """Environment variables with the locations of a job's datasets.

    A location comes from an option or from the catalog. The wiring of a job can change while a
    worker runs.
    """

    def __init__(self, client: Client, locations: Locations) -> None:
        self._client = client
        self._locations = locations
        self._datasets: tuple[Sequence[EntityId], Sequence[EntityId]] | None = None
        self._variables: Mapping[str, str] = {}

    def variables(self, inputs: Sequence[EntityId], outputs: Sequence[EntityId]) -> dict[str, str]:
        """Return the variables for these datasets, and the server's address."""
        if self._datasets != (inputs, outputs):
            locations = {name: self._locate(name) for name in dict.fromkeys((*inputs, *outputs))}
            self._variables = location_variables(inputs, outputs, locations)
            self._datasets = inputs, outputs
        return {"PENSTOCK_URL": self._client.url, **self._variables}

    def _locate(self, name: EntityId) -> str:
        return self._locations.get(name) or _catalog_location(self._client, name)


def _catalog_location(client: Client, name: EntityId) -> str:
    """Return the dataset's physical name, below its source if that is a location."""
    dataset = client.dataset(name.namespace, name.name)
    if _is_location(dataset.physical_name):
        return dataset.physical_name
    url = client.source(dataset.source_name).connection_url
    prefix = f"{url.removesuffix('/')}/" if _is_location(url) else ""
    return f"{prefix}{dataset.physical_name}"


def _is_location(text: str) -> bool:
    return "://" in text or text.startswith("/")


def location_variables(
    inputs: Sequence[EntityId], outputs: Sequence[EntityId], locations: Locations
) -> dict[str, str]:
    """Return PENSTOCK_INPUT_… and PENSTOCK_OUTPUT_…, one variable for each dataset."""
    return {
        **_variables("PENSTOCK_INPUT", inputs, locations),
        **_variables("PENSTOCK_OUTPUT", outputs, locations),
    }


def _variables(prefix: str, datasets: Sequence[EntityId], locations: Locations) -> dict[str, str]:
    names = variable_names(prefix, [(each.namespace, each.name) for each in datasets])
    if len(set(names)) < len(names):
        shown = ", ".join(f"{each.namespace}/{each.name}" for each in datasets)
        raise Invalid(f"the datasets {shown} have the same variable name; rename one")
    return {name: locations[each] for name, each in zip(names, datasets, strict=True)}


_NO_WORK = 3
_CONFLICT = 409
_SIGNALLED = 128

app = App(
    name="run",
    usage="Usage: penstock run JOB [OPTIONS] -- COMMAND [ARG...]",
    help_epilogue="""Examples:
  penstock run shop/totals --input raw --output totals -- ./totals.sh
  penstock run shop/totals --loop -- sh -c './totals.sh "$PENSTOCK_LOT"'
  penstock run shop/totals --lot 20261115PT24H -- ./totals.sh
  penstock run shop/totals --loop --wait --location raw=/data/raw -- ./totals

It claims a lot and runs the command with these environment variables:
PENSTOCK_LOT, PENSTOCK_RUN_ID, PENSTOCK_CLAIM, PENSTOCK_TOKEN, PENSTOCK_ATTEMPT,
PENSTOCK_JOB, PENSTOCK_NAMESPACE, PENSTOCK_URL, and the location of each dataset
in PENSTOCK_INPUT_NAME or PENSTOCK_OUTPUT_NAME (in capitals, other signs as _).
It renews the claim while the command runs. Exit code 0 completes the claim, any
other fails it with the last line of stderr.

The command receives SIGINT, SIGTERM and SIGHUP too; the claim is then released.
If the lease is lost or penstock is killed, the command is stopped.

Exit codes: 0 all lots completed, or no work; 1 a command failed or a lease was
lost; 3 no work, with --json; 128 plus the signal after a signal.""",
)


class CommandRun(Struct, frozen=True, rename="camel"):
    """The result of one lot; without an exit code the command was stopped."""

    lot: str
    claim: str
    token: int
    attempt: int
    state: str  # COMPLETED, FAILED, RELEASED, LOST
    exit_code: int | None
    error: str | None


class RunResult(Struct, frozen=True, rename="camel"):
    """The results of all lots, and the reason if there was no more work."""

    namespace: str
    job: str
    lots: Sequence[CommandRun]
    why: NoWorkReason | None


@app.default
def run(
    job: Annotated[str, Parameter(help="NAMESPACE/NAME, or the name of an existing job")],
    /,
    *command: Annotated[str, Parameter(help="the command and its arguments, after --")],
    inputs: Inputs = (),
    outputs: Outputs = (),
    lot: Annotated[str | None, Parameter(help="only this lot")] = None,
    loop: Annotated[bool, option("process lots until there are no more")] = False,
    wait: Annotated[bool, option("wait for lots instead of ending")] = False,
    newest: Annotated[bool, option("the newest lot first")] = False,
    lease: Annotated[
        int | None, Parameter(help="seconds without a heartbeat until the lot is free again")
    ] = None,
    owner: Annotated[
        str | None, Parameter(help="the worker's name; default: machine and process")
    ] = None,
    location: Annotated[
        tuple[str, ...], option("DATASET=PATH, the location of a dataset; repeatable")
    ] = (),
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> int:
    """Claim a lot, run a command on it, and complete or fail it by the exit code."""
    if not command:
        raise Invalid("there is no command; write it after --")
    if lot is not None and (loop or wait or newest):
        raise Invalid("--lot names one lot; leave out --loop, --wait and --newest")
    if shutil.which(command[0]) is None:
        raise Invalid(f"{command[0]} cannot be run: there is no such program; check its path")
    with options.connect() as client:
        name = job_or_new(client, job, namespace)
        wiring = _wire(client, name.namespace, name.name, inputs, outputs)
        environment = Environment(client, read_locations(location, wiring))
        environment.variables(wiring.inputs, wiring.outputs)  # fail before the first claim
        claims = client.claims(
            wiring.namespace,
            wiring.job,
            owner=owner,
            newest=newest,
            lease_seconds=lease,
            wait=wait,
            ahead=loop,
            lots=None if lot is None else [lot],
        )
        with Signals(claims) as signals:
            worker = _Worker(command, environment, signals, as_json=options.json)
            try:
                worker.work(claims, loop=loop)
            except ApiError as error:
                if lot is None or worker.started or error.code != _CONFLICT:
                    raise
                raise Conflict(_refusal(client, wiring, lot)) from None
        if lot is not None and claims.why_nothing is not None and not worker.started:
            raise Conflict(_refusal(client, wiring, lot))
    if options.json:
        write_json(RunResult(wiring.namespace, wiring.job, worker.lots, claims.why_nothing))
    elif claims.why_nothing is not None and not signals.received:
        note(claims.why_nothing.summary)
    if signals.received:
        return _SIGNALLED + signals.received
    if worker.failed:
        return exit_codes.FAILED
    return _NO_WORK if options.json and not worker.lots else exit_codes.DONE


def _refusal(client: Client, wiring: Wiring, lot: str) -> str:
    why = client.why(wiring.namespace, wiring.job, lot)
    return f"job {wiring.namespace}/{wiring.job} cannot run on lot {lot} now. {why.sentence}"


def _wire(
    client: Client, namespace: str, job: str, inputs: Sequence[str], outputs: Sequence[str]
) -> Wiring:
    if not inputs and not outputs:
        return client.wiring(namespace, job)
    return client.wire_job(namespace, job, inputs=inputs or None, outputs=outputs or None)


class _Worker:
    """A loop that runs the command on one lot after the other."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Environment,
        signals: Signals,
        *,
        as_json: bool,
    ) -> None:
        self._command = command
        self._environment = environment
        self._signals = signals
        self._as_json = as_json
        self.lots: list[CommandRun] = []
        self.started = False
        self.failed = False

    def work(self, claims: Claims, *, loop: bool) -> None:
        """Process one lot, or with `loop` all lots."""
        for claim in claims:
            self.started = True
            self._signals.busy = True
            result = self._process(claim)
            self._signals.busy = False
            self.failed = self.failed or result.state in ("FAILED", "LOST")
            # A worker may run for months, so keep only the results that are printed.
            if self._as_json:
                self.lots.append(result)
            if not loop:
                break

    def _process(self, claim: Claim) -> CommandRun:
        ended = None
        try:
            with claim:
                ended = self._run(claim)
                return self._end(claim, ended)
        except (ClaimLost, Unreachable) as error:
            complain(str(error))
            code = ended.code if ended is not None and not ended.stopped else None
            return _outcome(claim, "LOST", code, str(error))

    def _run(self, claim: Claim) -> Ended:
        reads = tuple(EntityId(each.namespace, each.name) for each in claim.inputs)
        try:
            variables = {
                **self._environment.variables(reads, tuple(claim.outputs)),
                "PENSTOCK_LOT": claim.lot,
                "PENSTOCK_RUN_ID": claim.run_id,
                "PENSTOCK_CLAIM": claim.id,
                "PENSTOCK_TOKEN": str(claim.token),
                "PENSTOCK_ATTEMPT": str(claim.attempt),
                "PENSTOCK_JOB": claim.job,
                "PENSTOCK_NAMESPACE": claim.namespace,
            }
            return run_command(
                self._command, variables, claim, self._signals, stdout_to_stderr=self._as_json
            )
        except Invalid:
            # The command did not start, so this must not cost the lot a try.
            claim.release()
            raise

    def _end(self, claim: Claim, ended: Ended) -> CommandRun:
        where = f"lot {claim.lot} of job {claim.namespace}/{claim.job}"
        if self._signals.received:
            claim.release()
            note(f"{where} is released")
            return _outcome(claim, "RELEASED", ended.code, None)
        if ended.stopped:
            claim.check()
        if ended.code == 0:
            claim.complete()
            note(f"{where} is completed")
            return _outcome(claim, "COMPLETED", 0, None)
        claim_end = claim.fail(ended.error)
        held = "; that was the last try, and the lot is held" if claim_end.state == "HELD" else ""
        complain(
            f"{where} has failed: {ended.error}; try {claim.attempt} of {claim.attempts_max}{held}"
        )
        return _outcome(claim, "FAILED", ended.code, ended.error)


def _outcome(claim: Claim, state: str, code: int | None, error: str | None) -> CommandRun:
    return CommandRun(claim.lot, claim.id, claim.token, claim.attempt, state, code, error)

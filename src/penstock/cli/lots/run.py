"""`penstock run`: any command made safe by a claim."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import App, Parameter
from msgspec import Struct

from penstock.arcs.spec import variable_names
from penstock.cli import exit_codes
from penstock.cli.lots.guarded import Ended, Signals, run_command
from penstock.cli.options import REMOTE, Inputs, Json, Namespace, Outputs, RemoteFlags, switch
from penstock.cli.output import complain, note, write_json
from penstock.cli.targets import name_job
from penstock.client import ApiError, Claim, ClaimLost, Claims, Client, Unreachable
from penstock.client.names import read_name
from penstock.errors import Conflict, Invalid
from penstock.schema.catalog import EntityId
from penstock.schema.locks import NoWorkReason, Wiring

Locations = Mapping[EntityId, str]


def read_locations(given: Sequence[str], wiring: Wiring) -> dict[EntityId, str]:
    """What `--location DATASET=PATH` says; every dataset must be one of the job's."""
    known = [*wiring.inputs, *wiring.outputs]
    found = {}
    for text in given:
        dataset, equals, place = text.partition("=")
        if not equals or not place:
            raise Invalid(f"--location {text!r} names no place; write DATASET=PATH")
        named = read_name(dataset, wiring.namespace)
        if named not in known:
            names = ", ".join(f"{each.namespace}/{each.name}" for each in known)
            raise Invalid(f"--location: {dataset!r} is no dataset of this job, which has {names}")
        found[named] = place
    return found


class Surroundings:
    """Where the datasets of a job are, as a command's environment has it: as given, or else as the
    catalog has it. A job can be wired to others while a worker goes on.
    """

    def __init__(self, client: Client, given: Locations) -> None:
        self._client = client
        self._given = given
        self._sides: tuple[Sequence[EntityId], Sequence[EntityId]] | None = None
        self._variables: Mapping[str, str] = {}

    def variables(self, inputs: Sequence[EntityId], outputs: Sequence[EntityId]) -> dict[str, str]:
        """The variables for these datasets, and the server's address."""
        if self._sides != (inputs, outputs):
            places = {named: self._place(named) for named in dict.fromkeys((*inputs, *outputs))}
            self._variables = location_variables(inputs, outputs, places)
            self._sides = inputs, outputs
        return {"PENSTOCK_URL": self._client.url, **self._variables}

    def _place(self, named: EntityId) -> str:
        return self._given.get(named) or _in_catalog(self._client, named)


def _in_catalog(client: Client, named: EntityId) -> str:
    """The dataset's physical name, below its source where that is a place."""
    dataset = client.dataset(named.namespace, named.name)
    if _is_place(dataset.physical_name):
        return dataset.physical_name
    url = client.source(dataset.source_name).connection_url
    return (
        f"{url.removesuffix('/')}/{dataset.physical_name}"
        if _is_place(url)
        else (dataset.physical_name)
    )


def _is_place(text: str) -> bool:
    return "://" in text or text.startswith("/")


def location_variables(
    inputs: Sequence[EntityId], outputs: Sequence[EntityId], places: Locations
) -> dict[str, str]:
    """PENSTOCK_INPUT_… and PENSTOCK_OUTPUT_…, one variable for each dataset."""
    return {
        **_variables("PENSTOCK_INPUT", inputs, places),
        **_variables("PENSTOCK_OUTPUT", outputs, places),
    }


def _variables(prefix: str, datasets: Sequence[EntityId], places: Locations) -> dict[str, str]:
    names = variable_names(prefix, [(each.namespace, each.name) for each in datasets])
    if len(set(names)) < len(names):
        shown = ", ".join(f"{each.namespace}/{each.name}" for each in datasets)
        raise Invalid(f"no two variables can be made for {shown}; their names are too much alike")
    return {name: places[each] for name, each in zip(names, datasets, strict=True)}


NOTHING_TO_DO = 3
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

It claims a lot that the job can work on and runs the command, which finds in
its environment: PENSTOCK_LOT, PENSTOCK_RUN_ID, PENSTOCK_CLAIM, PENSTOCK_TOKEN,
PENSTOCK_ATTEMPT, PENSTOCK_JOB, PENSTOCK_NAMESPACE, PENSTOCK_URL, and where each
dataset is, as PENSTOCK_INPUT_NAME and PENSTOCK_OUTPUT_NAME (in capitals, other
signs as _). The claim is kept alive while the command runs, completed when it
ends with exit code 0 and failed when not, with the last line of its stderr.

SIGINT, SIGTERM and SIGHUP are passed on; the claim is then given back. When the
lease is lost, or penstock itself is killed, the command is stopped.

Exit codes: 0 all lots completed, or nothing to do; 1 a command failed or its
lease was lost; 3 nothing to do, with --json; 128 and the signal when signalled.""",
)


class LotRun(Struct, frozen=True, rename="camel"):
    """What became of one lot; without an exit code the command did not end by itself."""

    lot: str
    claim: str
    token: int
    attempt: int
    state: str  # COMPLETED, FAILED, RELEASED, LOST
    exit_code: int | None
    error: str | None


class Ran(Struct, frozen=True, rename="camel"):
    """What became of all lots, and why there was no other where there was none."""

    namespace: str
    job: str
    lots: Sequence[LotRun]
    why: NoWorkReason | None


@app.default
def run(
    job: Annotated[str, Parameter(help="NAMESPACE/NAME, or the name of a job that is there")],
    /,
    *command: Annotated[str, Parameter(help="the command and its arguments, after --")],
    inputs: Inputs = (),
    outputs: Outputs = (),
    lot: Annotated[str | None, Parameter(help="exactly this lot, and no other")] = None,
    loop: Annotated[bool, switch("go on with the next lot until there is none")] = False,
    wait: Annotated[bool, switch("wait for a lot when there is none")] = False,
    newest: Annotated[bool, switch("the newest lot first")] = False,
    lease: Annotated[
        int | None, Parameter(help="seconds without a heartbeat after which the lot is free again")
    ] = None,
    owner: Annotated[str | None, Parameter(help="who works; else this machine and process")] = None,
    location: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(), show_default=False, help="DATASET=PATH, where a dataset is; repeatable"
        ),
    ] = (),
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Claim a lot, run a command on it, and complete or fail it by the exit code."""
    if not command:
        raise Invalid("there is no command to run; write it after --")
    if lot is not None and (loop or wait or newest):
        raise Invalid("--lot names one lot; leave out --loop, --wait and --newest")
    if shutil.which(command[0]) is None:
        raise Invalid(f"{command[0]} cannot be run: there is no such program; check its path")
    with remote.connect() as client:
        named = name_job(client, job, namespace)
        wiring = _wire(client, named.namespace, named.name, inputs, outputs)
        surroundings = Surroundings(client, read_locations(location, wiring))
        surroundings.variables(wiring.inputs, wiring.outputs)  # what cannot be is said at once
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
            worker = _Worker(command, surroundings, signals, as_json=as_json)
            try:
                worker.work(claims, loop=loop)
            except ApiError as error:
                if lot is None or worker.started or error.code != _CONFLICT:
                    raise
                raise Conflict(_refusal(client, wiring, lot)) from None
        if lot is not None and claims.why_nothing is not None and not worker.started:
            raise Conflict(_refusal(client, wiring, lot))
    if as_json:
        write_json(Ran(wiring.namespace, wiring.job, worker.lots, claims.why_nothing))
    elif claims.why_nothing is not None and not signals.received:
        note(claims.why_nothing.summary)
    if signals.received:
        return _SIGNALLED + signals.received
    if worker.failed:
        return exit_codes.FAILED
    return NOTHING_TO_DO if as_json and not worker.lots else exit_codes.DONE


def _refusal(client: Client, wiring: Wiring, lot: str) -> str:
    """Why a job may not run on the lot that was named."""
    found = client.why(wiring.namespace, wiring.job, lot)
    return f"job {wiring.namespace}/{wiring.job} cannot run on lot {lot} now. {found.sentence}"


def _wire(
    client: Client, namespace: str, job: str, inputs: Sequence[str], outputs: Sequence[str]
) -> Wiring:
    if not inputs and not outputs:
        return client.wiring(namespace, job)
    return client.wire_job(namespace, job, inputs=inputs or None, outputs=outputs or None)


class _Worker:
    """Runs the command on one lot after the other."""

    def __init__(
        self,
        command: Sequence[str],
        surroundings: Surroundings,
        signals: Signals,
        *,
        as_json: bool,
    ) -> None:
        self._command = command
        self._surroundings = surroundings
        self._signals = signals
        self._as_json = as_json
        self.lots: list[LotRun] = []
        self.started = False
        self.failed = False

    def work(self, claims: Claims, *, loop: bool) -> None:
        """Work on a lot, or on all there are."""
        for claim in claims:
            self.started = True
            self._signals.busy = True
            done = self._work_on(claim)
            self._signals.busy = False
            self.failed = self.failed or done.state in ("FAILED", "LOST")
            # A worker may go on for months: what nobody will read is not kept.
            if self._as_json:
                self.lots.append(done)
            if not loop:
                break

    def _work_on(self, claim: Claim) -> LotRun:
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
                **self._surroundings.variables(reads, tuple(claim.outputs)),
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
            # It could not even be started: no try of the lot is lost for that.
            claim.release()
            raise

    def _end(self, claim: Claim, ended: Ended) -> LotRun:
        where = f"lot {claim.lot} of job {claim.namespace}/{claim.job}"
        if self._signals.received:
            claim.release()
            note(f"{where} is given back")
            return _outcome(claim, "RELEASED", ended.code, None)
        if ended.stopped:
            claim.check()
        if ended.code == 0:
            claim.complete()
            note(f"{where} is completed")
            return _outcome(claim, "COMPLETED", 0, None)
        stopped = claim.fail(ended.error)
        held = "; that was the last, and it is held" if stopped.state == "HELD" else ""
        complain(
            f"{where} has failed: {ended.error}; "
            f"this was try {claim.attempt} of {claim.attempts_max}{held}"
        )
        return _outcome(claim, "FAILED", ended.code, ended.error)


def _outcome(claim: Claim, state: str, code: int | None, error: str | None) -> LotRun:
    return LotRun(claim.lot, claim.id, claim.token, claim.attempt, state, code, error)

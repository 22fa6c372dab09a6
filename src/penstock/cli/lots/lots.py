"""`penstock lots`."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from penstock.cli import exit_codes
from penstock.cli.ingest.watch import show_bytes
from penstock.cli.lots.hold import held_before
from penstock.cli.options import REMOTE, Json, Limit, Namespace, Offset, RemoteFlags, Why, switch
from penstock.cli.output import (
    Column,
    note,
    write_fields,
    write_json,
    write_line,
    write_rest,
    write_table,
)
from penstock.cli.targets import From, To, exact_dataset, find_dataset, find_entity, read_bound
from penstock.cli.times import show_time
from penstock.client import ApiError, Client
from penstock.client.names import read_name
from penstock.errors import Invalid, NotFound
from penstock.schema.catalog import EntityId
from penstock.schema.gaps import Gaps
from penstock.schema.lots import Log, Lot, LotManifest, Registered


def write_gaps(found: Gaps) -> None:
    """The ranges, each with its cause and the root of it."""
    totals = "".join(f", {number:,} {kind}" for kind, number in found.totals.items() if number)
    write_line(
        f"{found.namespace}/{found.dataset}, {found.count:,} lots of {found.interval} from "
        f"{found.first} to {found.last}: {found.there:,} there{totals}"
    )
    for gap in found.ranges:
        span = gap.first if gap.count == 1 else f"{gap.first} to {gap.last} ({gap.count:,} lots)"
        write_line(f"{span}: {gap.kind}")
        if gap.cause is None:
            continue
        write_line(f"  {gap.cause.sentence}")
        for root in gap.cause.roots:
            told = "" if root.sentence in gap.cause.sentence else f": {root.sentence}"
            write_line(f"  root: lot {root.lot} of {root.namespace}/{root.dataset}{told}")
        if not gap.is_alike:
            write_line("  Lots after the first may have other causes: ask for fewer to be told.")
    if found.is_cut:
        note(f"the first {len(found.ranges):,} ranges are shown; --from goes on after them")


app = App(
    name="lots",
    help_epilogue="""Examples:
  penstock lots register shop/raw 1 2 3
  seq 1 20 | penstock lots register shop/raw -
  penstock lots list shop/raw
  penstock lots hold shop/raw 3 --why "the file is cut off"
  penstock lots show shop/raw 3
  penstock lots log shop/raw 3
  penstock lots log --job shop/totals
  penstock lots remove shop/totals 3 --why "older than a year" --yes
  penstock lots gaps shop/totals --from 2026-11-01 --to 2026-11-15""",
)

Dataset = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or dataset:NAMESPACE:NAME")]
LotId = Annotated[str, Parameter(help="the lot")]
STATUS = Column("status", whole=True)
SINCE = Column("since", whole=True)
_AT_ONCE = 1000
_ALIKE = 0.85  # how like another a name is that may be mistyped
_NOT_FOUND = 404


@app.command
def register(
    dataset: Dataset,
    /,
    *lots: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="the lots; - reads them from stdin")
    ],
    priority: Annotated[int, Parameter(help="higher ones are worked on first")] = 0,
    renew: Annotated[bool, switch("there is a new version of those that are there")] = False,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Register lots that no job made; jobs that read the dataset then find them.

    A dataset that is not there is created with its namespace, unless its name is
    close to that of another.
    """
    named = iter(_read(lots))
    count = 0
    with remote.connect() as client:
        at = _find_or_create(client, dataset, namespace)
        while some := list(islice(named, _AT_ONCE)):
            count += client.register_lots(*at, some, priority=priority, renew=renew)
    if as_json:
        write_json(Registered(count))
    else:
        lots_of = "1 lot" if count == 1 else f"{count:,} lots"
        write_line(f"{lots_of} of {'/'.join(at)} registered")


def _find_or_create(client: Client, dataset: str, namespace: str | None) -> tuple[str, str]:
    """A dataset by its whole name; a new one is created, and reported on stderr."""
    if namespace is None and ("/" not in dataset or dataset.startswith("dataset:")):
        return exact_dataset(client, dataset, namespace)
    at = EntityId(namespace, dataset) if namespace is not None else read_name(dataset)
    try:
        if namespace is None:
            return exact_dataset(client, dataset, None)
        client.dataset(namespace, dataset)
    except (NotFound, ApiError) as error:
        if isinstance(error, ApiError) and error.code != _NOT_FOUND:
            raise
    else:
        return at.namespace, at.name
    name = f"{at.namespace}/{at.name}"
    if alike := _names_like(client, at):
        raise NotFound(
            f"there is no dataset {name!r}; did you mean {alike}? To create it: "
            f"{shlex.join(['penstock', 'datasets', 'create', name])}"
        )
    created = client.create_dataset(at.namespace, at.name)
    if created.is_namespace_new:
        note(f"namespace {at.namespace} is created")
    note(f"dataset {at.namespace}/{at.name} is created")
    return at.namespace, at.name


def _names_like(client: Client, at: EntityId) -> str:
    """The datasets, and those of namespaces, whose names are close to one that is not there."""
    spaces = [each.name for each in client.namespaces(limit=_AT_ONCE).namespaces]
    if at.namespace in spaces:
        names = [each.name for each in client.datasets(at.namespace, limit=_AT_ONCE).datasets]
        longer = [name for name in names if name.startswith(at.name)]
        alike = get_close_matches(at.name, names, cutoff=_ALIKE) or longer[:3]
        return " or ".join(f"{at.namespace}/{name}" for name in alike)
    alike = get_close_matches(at.namespace, spaces, cutoff=_ALIKE)
    return " or ".join(f"{space}/{at.name}" for space in alike)


def _read(lots: Sequence[str]) -> Iterator[str]:
    if not lots:
        raise Invalid("there is no lot to register; name some, or write - to read them from stdin")
    if tuple(lots) != ("-",):
        yield from lots
        return
    yield from (text for line in sys.stdin if (text := line.strip()))


@app.command(name="list")
def list_lots(
    dataset: Dataset,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List the lots of a dataset."""
    with remote.connect() as client:
        found = client.lots(*find_dataset(client, dataset, namespace), limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_table(
        ("lot", STATUS, "made by", "locked for", SINCE),
        (
            (lot.lot, lot.status, _maker(lot), ", ".join(lot.locks), show_time(lot.since))
            for lot in found.lots
        ),
    )
    write_rest(len(found.lots), found.total_count, offset)


@app.command
def show(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    version: Annotated[str | None, Parameter(help="another version of it, by its id")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show a lot: who made it, what is locked, who reads it, and what it consists of.

    The exit code is 1 if what it consists of should be known, and cannot be read.
    """
    with remote.connect() as client:
        at = find_dataset(client, dataset, namespace)
        found = client.lot(*at, lot)
        manifest = _manifest(client, at, lot, version, limit, offset)
    if as_json:
        if isinstance(manifest, ApiError):
            raise manifest
        write_json(Shown(**msgspec.structs.asdict(found), manifest=manifest))
        return
    _write_lot(found)
    if isinstance(manifest, ApiError):
        raise manifest
    if manifest is not None:
        _write_manifest(manifest, offset)


def _write_lot(found: Lot) -> None:
    write_fields(
        [
            ("lot", found.lot),
            ("dataset", f"{found.namespace}/{found.dataset}"),
            ("status", found.status),
            ("locked for", ", ".join(found.locks)),
            ("made by", _maker(found)),
            ("run", found.run),
            ("version id", found.version),
            ("since", show_time(found.since)),
        ]
    )
    if found.consumers:
        write_line()
        write_table(
            ("read by", STATUS, SINCE),
            (
                (f"{each.namespace}/{each.job}", each.status, show_time(each.since))
                for each in found.consumers
            ),
        )


class Shown(Lot, frozen=True):
    """A lot, and the bill of its materials; null if it was registered without one."""

    manifest: LotManifest | None


def _manifest(
    client: Client, at: tuple[str, str], lot: str, version: str | None, limit: int, offset: int
) -> LotManifest | ApiError | None:
    """What a lot consists of, why that cannot be told, or None if nobody has told."""
    try:
        return client.manifest(*at, lot, version=version, limit=limit, offset=offset)
    except ApiError as error:
        return error if error.code != _NOT_FOUND or version is not None else None


def _write_manifest(found: LotManifest, offset: int) -> None:
    write_line()
    write_fields(
        [
            ("manifest", found.state if found.is_current else f"{found.state}, of an old version"),
            ("at", found.url),
            ("consists of", _things(found)),
            ("in parts", f"{len(found.parts):,}" if found.parts else ""),
            ("written by", found.attempt),
            ("comment", found.comment),
        ]
    )
    if found.uris:
        write_line()
        write_table(
            ("uri", Column("bytes", numbers=True), "digest"),
            ((item.uri, item.size, item.digest) for item in found.uris),
        )
    write_rest(len(found.uris), found.total_count, offset)


@app.command
def remove(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Why,
    force: Annotated[
        bool, switch("also if jobs have read a registered or claimed lot; it is marked as removed")
    ] = False,
    yes: Annotated[bool, switch("do not ask first")] = False,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Remove a lot; nobody can read it until it is made or registered again.

    Data that no arc has written is not removed: it must be gone before. Repeating
    it ends what was cut off. A registered or claimed lot that nothing has read is
    forgotten wholly, as if it had never been.
    """
    with remote.connect() as client:
        at = exact_dataset(client, dataset, namespace)
        if not yes and not _confirm_removal(client, at, lot):
            note("nothing was removed")
            return 1
        found = client.remove_lot(*at, lot, why, force=force)
    if as_json:
        write_json(found)
    elif found.manifest is None:
        write_line(f"lot {lot} of {'/'.join(at)} is forgotten: nothing had read it")
    else:
        write_line(f"lot {lot} of {'/'.join(at)} is removed: {_things(found.manifest)}")
    return exit_codes.DONE


def _confirm_removal(client: Client, at: tuple[str, str], lot: str) -> bool:
    """Ask whether to remove a lot, with what it consists of as far as a manifest lists that."""
    manifest = _manifest(client, at, lot, None, 1, 0)
    if isinstance(manifest, ApiError):
        raise manifest
    what = _things(manifest) if manifest is not None else client.lot(*at, lot).status
    if not sys.stdin.isatty():
        raise Invalid("stdin is not a terminal; pass --yes to remove the lot")
    note(f"Remove lot {lot} of {'/'.join(at)}, {what}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _things(found: LotManifest) -> str:
    things = "1 thing" if found.total_count == 1 else f"{found.total_count:,} things"
    return f"{things}, {show_bytes(found.bytes)}"


@app.command
def gaps(
    dataset: Dataset,
    /,
    *,
    first: From = None,
    last: To = None,
    interval: Annotated[
        str | None, Parameter(help="PT5M … PT24H, if lots do not tell", show_default=False)
    ] = None,
    causes: Annotated[bool, Parameter(help="say why, and which lot is the root")] = True,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Name the lots of a dataset that are not there, in ranges, and why.

    Without --from it begins with the first lot, without --to it ends now. The
    exit code is 3 if any lot is missing, partial, running, held, waiting or
    removed; one that is empty is there.
    """
    bounds = read_bound(first), read_bound(last)
    with remote.connect() as client:
        at = find_dataset(client, dataset, namespace)
        found = client.gaps(*at, *bounds, interval=interval, causes=causes)
    if as_json:
        write_json(found)
    else:
        write_gaps(found)
    return exit_codes.DONE if found.is_whole else exit_codes.GAPS


@app.command
def log(
    dataset: Annotated[str | None, Parameter(help="the dataset whose lot it is")] = None,
    lot: Annotated[str | None, Parameter(help="the lot")] = None,
    /,
    *,
    job: Annotated[str | None, Parameter(help="the log of this job, not of a lot")] = None,
    run: Annotated[str | None, Parameter(help="the log of this run, not of a lot")] = None,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List what happened to a lot, or to the lots of a job or a run, newest first."""
    with remote.connect() as client:
        match dataset, lot, job, run:
            case str(), str(), None, None:
                at = find_dataset(client, dataset, namespace)
                found = client.lot_log(*at, lot, limit=limit, offset=offset)
            case None, None, str(), None:
                named = find_entity(client, job, "JOB", namespace)
                found = client.job_log(named.namespace, named.name, limit=limit, offset=offset)
            case None, None, None, str():
                found = client.run_log(run, limit=limit, offset=offset)
            case _:
                raise Invalid("whose log? Name a DATASET and a LOT, or a --job, or a --run")
    if as_json:
        write_json(found)
    else:
        _write_log(found)


def _write_log(found: Log) -> None:
    write_table(
        (Column("at", whole=True), "did", "lot", "job or dataset", "from", "to", "who", "why"),
        (
            (
                show_time(entry.at),
                entry.action,
                entry.lot,
                f"{entry.namespace}/{entry.job or entry.dataset}",
                entry.was,
                entry.became,
                entry.who,
                entry.why,
            )
            for entry in found.entries
        ),
    )


@app.command
def hold(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Lock a lot for everybody, until it is let go."""
    with remote.connect() as client:
        at = exact_dataset(client, dataset, namespace)
        held = client.hold_lot(*at, lot, why)
    _tell(held, "is held", as_json)
    if held.held_before is not None and not as_json:
        write_line(held_before(held.held_before))


@app.command
def unhold(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Put a held lot back as it was."""
    with remote.connect() as client:
        at = exact_dataset(client, dataset, namespace)
        released = client.unhold_lot(*at, lot, why)
        _tell(released, "is let go", as_json)
        maker = released.job
        if maker is not None and released.status == "ERROR" and not as_json:
            write_line(client.why(maker.namespace, maker.name, lot).sentence)


def _tell(lot: Lot, what: str, as_json: bool) -> None:
    if as_json:
        write_json(lot)
    else:
        status = lot.status or "it is not there yet"
        write_line(f"lot {lot.lot} of {lot.namespace}/{lot.dataset} {what}: {status}")


def _maker(lot: Lot) -> str:
    return f"{lot.job.namespace}/{lot.job.name}" if lot.job else "outside"

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
from penstock.cli.formats import show_bytes, show_time
from penstock.cli.lots.holds import earlier_hold
from penstock.cli.options import OPTIONS, Limit, Namespace, Offset, Options, Reason, option
from penstock.cli.output import (
    Column,
    counted,
    note,
    write_fields,
    write_line,
    write_rest,
    write_table,
)
from penstock.cli.targets import (
    Dataset,
    From,
    LotId,
    To,
    exact_dataset,
    find_dataset,
    find_job,
    read_bound,
)
from penstock.client import ApiError, Client
from penstock.client.names import read_name
from penstock.errors import Invalid, NotFound
from penstock.schema.catalog import EntityId
from penstock.schema.gaps import Gaps
from penstock.schema.lots import Lot, LotManifest, Registered

app = App(
    name="lots",
    help_epilogue="""Examples:
  penstock lots register shop/raw 1 2 3
  seq 1 20 | penstock lots register shop/raw -
  penstock lots list shop/raw
  penstock lots hold shop/raw 3 --why "the file is cut off"
  penstock lots release shop/raw 3 --why "the file is complete"
  penstock lots show shop/raw 3
  penstock lots log shop/raw 3
  penstock lots log --job shop/totals
  penstock lots remove shop/totals 3 --why "older than a year" --yes
  penstock lots gaps shop/totals --from 2026-11-01 --to 2026-11-15""",
)

_STATUS = Column("status", whole=True)
_SINCE = Column("since", whole=True)
_PAGE = 1000
_SIMILARITY_MIN = 0.85  # a name that is more similar may be meant
_NOT_FOUND = 404


@app.command
def register(
    dataset: Dataset,
    /,
    *lots: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="the lots; - reads them from stdin")
    ],
    priority: Annotated[int, Parameter(help="lots with a higher priority come first")] = 0,
    renew: Annotated[bool, option("the lots have a new version")] = False,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Register lots that no job makes, so that jobs can read them.

    A new dataset is created with its namespace, unless its name is similar to
    another one.
    """
    names = iter(_read(lots))
    count = 0
    with options.connect() as client:
        at = _find_or_create(client, dataset, namespace)
        while page := list(islice(names, _PAGE)):
            count += client.register_lots(*at, page, priority=priority, renew=renew)
    options.write_line(Registered(count), f"{counted(count, 'lot')} of {'/'.join(at)} registered")


def _find_or_create(client: Client, dataset: str, namespace: str | None) -> tuple[str, str]:
    """Find a dataset by its whole name, or create it."""
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
    if similar := _similar_names(client, at):
        raise NotFound(
            f"there is no dataset {name!r}; did you mean {similar}? To create it: "
            f"{shlex.join(['penstock', 'datasets', 'create', name])}"
        )
    created = client.create_dataset(at.namespace, at.name)
    if created.is_namespace_new:
        note(f"namespace {at.namespace} is created")
    note(f"dataset {name} is created")
    return at.namespace, at.name


def _similar_names(client: Client, at: EntityId) -> str:
    """List datasets or namespaces with names similar to a missing one."""
    spaces = [each.name for each in client.namespaces(limit=_PAGE).namespaces]
    if at.namespace in spaces:
        names = [each.name for each in client.datasets(at.namespace, limit=_PAGE).datasets]
        longer = [name for name in names if name.startswith(at.name)]
        similar = get_close_matches(at.name, names, cutoff=_SIMILARITY_MIN) or longer[:3]
        return " or ".join(f"{at.namespace}/{name}" for name in similar)
    similar = get_close_matches(at.namespace, spaces, cutoff=_SIMILARITY_MIN)
    return " or ".join(f"{space}/{at.name}" for space in similar)


def _read(lots: Sequence[str]) -> Iterator[str]:
    if not lots:
        raise Invalid("name one or more lots to register, or write - to read them from stdin")
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
    options: Options = OPTIONS,
) -> None:
    """List the lots of a dataset."""
    with options.connect() as client:
        page = client.lots(*find_dataset(client, dataset, namespace), limit=limit, offset=offset)
    options.write_table(
        page,
        ("lot", _STATUS, "made by", "locked for", _SINCE),
        (
            (lot.lot, lot.status, _maker(lot), ", ".join(lot.locks), show_time(lot.since))
            for lot in page.lots
        ),
        total_count=page.total_count,
        offset=offset,
    )


class LotWithManifest(Lot, frozen=True):
    """A lot with the manifest of its contents; null if it was registered without one."""

    manifest: LotManifest | None


@app.command
def show(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    version: Annotated[str | None, Parameter(help="the id of another version")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Show a lot: its maker, locks, readers and contents.

    The exit code is 1 if its manifest cannot be read.
    """
    with options.connect() as client:
        at = find_dataset(client, dataset, namespace)
        details = client.lot(*at, lot)
        manifest = _manifest(client, at, lot, version, limit, offset)
    if not options.json:
        _write_lot(details)
    if isinstance(manifest, ApiError):
        raise manifest

    def write_text(document: LotWithManifest) -> None:
        if document.manifest is not None:
            _write_manifest(document.manifest, offset)

    document = LotWithManifest(**msgspec.structs.asdict(details), manifest=manifest)
    options.write(document, write_text)


def _write_lot(lot: Lot) -> None:
    write_fields(
        [
            ("lot", lot.lot),
            ("dataset", f"{lot.namespace}/{lot.dataset}"),
            ("status", lot.status),
            ("locked for", ", ".join(lot.locks)),
            ("made by", _maker(lot)),
            ("run", lot.run),
            ("version id", lot.version),
            ("since", show_time(lot.since)),
        ]
    )
    if lot.consumers:
        write_line()
        write_table(
            ("read by", _STATUS, _SINCE),
            (
                (f"{each.namespace}/{each.job}", each.status, show_time(each.since))
                for each in lot.consumers
            ),
        )


def _manifest(
    client: Client, at: tuple[str, str], lot: str, version: str | None, limit: int, offset: int
) -> LotManifest | ApiError | None:
    """Fetch the manifest of a lot, the error if it cannot be read, or None without a manifest."""
    try:
        return client.manifest(*at, lot, version=version, limit=limit, offset=offset)
    except ApiError as error:
        return error if error.code != _NOT_FOUND or version is not None else None


def _write_manifest(manifest: LotManifest, offset: int) -> None:
    write_line()
    state = manifest.state if manifest.is_current else f"{manifest.state}, of an old version"
    write_fields(
        [
            ("manifest", state),
            ("at", manifest.url),
            ("consists of", _contents(manifest)),
            ("in parts", f"{len(manifest.parts):,}" if manifest.parts else ""),
            ("written by", manifest.attempt),
            ("comment", manifest.comment),
        ]
    )
    if manifest.uris:
        write_line()
        write_table(
            ("uri", Column("bytes", numbers=True), "digest"),
            ((item.uri, item.size, item.digest) for item in manifest.uris),
        )
    write_rest(len(manifest.uris), manifest.total_count, offset)


@app.command
def remove(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Reason,
    force: Annotated[
        bool, option("also remove a registered or claimed lot that jobs have read, and mark it")
    ] = False,
    yes: Annotated[bool, option("do not ask first")] = False,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> int:
    """Remove a lot: no job can read it until it is made or registered again.

    Penstock deletes only data that arcs wrote; delete other data first. Repeat
    the command to finish an interrupted removal. A registered or claimed lot
    that no job has read leaves no trace.
    """
    with options.connect() as client:
        at = exact_dataset(client, dataset, namespace)
        if not yes and not _confirm_removal(client, at, lot):
            note("nothing was removed")
            return exit_codes.FAILED
        removed = client.remove_lot(*at, lot, why, force=force)
    manifest = removed.manifest
    contents = "no job had read it" if manifest is None else _contents(manifest)
    options.write_line(removed, f"lot {lot} of {'/'.join(at)} is removed: {contents}")
    return exit_codes.DONE


def _confirm_removal(client: Client, at: tuple[str, str], lot: str) -> bool:
    manifest = _manifest(client, at, lot, None, 1, 0)
    if isinstance(manifest, ApiError):
        raise manifest
    contents = _contents(manifest) if manifest is not None else client.lot(*at, lot).status
    if not sys.stdin.isatty():
        raise Invalid("stdin is not a terminal; pass --yes to remove the lot")
    note(f"Remove lot {lot} of {'/'.join(at)}, {contents}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _contents(manifest: LotManifest) -> str:
    return f"{counted(manifest.total_count, 'object')}, {show_bytes(manifest.bytes)}"


@app.command
def gaps(
    dataset: Dataset,
    /,
    *,
    first: From = None,
    last: To = None,
    interval: Annotated[
        str | None,
        Parameter(help="PT5M … PT24H, if the lots do not show it", show_default=False),
    ] = None,
    causes: Annotated[bool, Parameter(help="show the cause and the root lot of each gap")] = True,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> int:
    """List the missing lots of a dataset in ranges, with their causes.

    The range begins at the first lot and ends now, unless --from and --to set
    it. The exit code is 3 if any lot is missing, partial, running, held,
    waiting or removed. An empty lot is not missing.
    """
    bounds = read_bound(first), read_bound(last)
    with options.connect() as client:
        at = find_dataset(client, dataset, namespace)
        report = client.gaps(*at, *bounds, interval=interval, causes=causes)
    options.write(report, _write_gaps)
    return exit_codes.DONE if report.is_whole else exit_codes.GAPS


def _write_gaps(gaps: Gaps) -> None:
    totals = "".join(f", {number:,} {kind}" for kind, number in gaps.totals.items() if number)
    write_line(
        f"{gaps.namespace}/{gaps.dataset}, {gaps.count:,} lots of {gaps.interval} from "
        f"{gaps.first} to {gaps.last}: {gaps.there:,} present{totals}"
    )
    for gap in gaps.ranges:
        span = gap.first if gap.count == 1 else f"{gap.first} to {gap.last} ({gap.count:,} lots)"
        write_line(f"{span}: {gap.kind}")
        if gap.cause is None:
            continue
        write_line(f"  {gap.cause.sentence}")
        for root in gap.cause.roots:
            sentence = "" if root.sentence in gap.cause.sentence else f": {root.sentence}"
            write_line(f"  root: lot {root.lot} of {root.namespace}/{root.dataset}{sentence}")
        if not gap.is_alike:
            write_line("  Lots after the first may have other causes: ask for a shorter range.")
    if gaps.is_cut:
        note(f"the first {len(gaps.ranges):,} ranges are shown; continue after them with --from")


@app.command
def log(
    dataset: Annotated[str | None, Parameter(help="the dataset of the lot")] = None,
    lot: Annotated[str | None, Parameter(help="the lot")] = None,
    /,
    *,
    job: Annotated[str | None, Parameter(help="the log of this job, not of a lot")] = None,
    run: Annotated[str | None, Parameter(help="the log of this run, not of a lot")] = None,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List the history of a lot, or of the lots of a job or a run, newest first."""
    with options.connect() as client:
        match dataset, lot, job, run:
            case str(), str(), None, None:
                at = find_dataset(client, dataset, namespace)
                page = client.lot_log(*at, lot, limit=limit, offset=offset)
            case None, None, str(), None:
                at = find_job(client, job, namespace)
                page = client.job_log(*at, limit=limit, offset=offset)
            case None, None, None, str():
                page = client.run_log(run, limit=limit, offset=offset)
            case _:
                raise Invalid("name a DATASET and a LOT, or a --job, or a --run")
    options.write_table(
        page,
        (
            Column("at", whole=True),
            "action",
            "lot",
            "job or dataset",
            "from",
            "to",
            "who",
            "why",
        ),
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
            for entry in page.entries
        ),
    )


@app.command
def hold(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Hold a lot until it is released: no job can read it."""
    with options.connect() as client:
        held = client.hold_lot(*exact_dataset(client, dataset, namespace), lot, why)
    _write_state(held, "is held", options)
    if held.held_before is not None and not options.json:
        write_line(earlier_hold(held.held_before))


@app.command
def release(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """End the hold of a lot, which returns to its earlier status."""
    with options.connect() as client:
        released = client.release_lot(*exact_dataset(client, dataset, namespace), lot, why)
        _write_state(released, "is released", options)
        maker = released.job
        if maker is not None and released.status == "ERROR" and not options.json:
            write_line(client.why(maker.namespace, maker.name, lot).sentence)


def _write_state(lot: Lot, done: str, options: Options) -> None:
    status = lot.status or "it does not exist yet"
    options.write_line(lot, f"lot {lot.lot} of {lot.namespace}/{lot.dataset} {done}: {status}")


def _maker(lot: Lot) -> str:
    return f"{lot.job.namespace}/{lot.job.name}" if lot.job else "outside"

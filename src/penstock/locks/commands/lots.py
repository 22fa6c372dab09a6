"""Lots that come from outside: registered, so that jobs find them."""

from collections.abc import Mapping, Sequence

import msgspec

from penstock import ids
from penstock.catalog import dataset_rules
from penstock.catalog.claimed_runs import lot_facets
from penstock.catalog.commands.lookup import Write, dataset_row
from penstock.catalog.facets import event_stamp, write_stamps
from penstock.catalog.inheritance import inherit
from penstock.catalog.known_facets import LOT_FACET
from penstock.catalog.rows import DatasetRow, Origin, Role, replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.errors import Conflict, Invalid
from penstock.locks import rules
from penstock.locks.held import QUALITY, drop_reason
from penstock.locks.room import LockRoom
from penstock.locks.rows import OUTSIDE, LogRow, StatusRow
from penstock.locks.table import Status, writable
from penstock.lots.ids import check_lot, clock_interval
from penstock.lots.manifests import ManifestNote
from penstock.lots.room import NO_NOTES, LotEventKind, LotRoom
from penstock.states import ManifestState


class RegisterLots(Write, frozen=True):
    """Make lots of a dataset READY that no job of ours made.

    A lot that is READY already stays as it is, unless it is renewed: then it has a new version.
    """

    namespace: str
    dataset: str
    lots: tuple[str, ...]
    who: str
    priority: int = 0
    renew: bool = False
    manifests: tuple[ManifestNote, ...] = ()  # of each lot, if there are any

    def apply(self, world: World, now: Micros) -> int:
        """Register them; returned is how many were new."""
        dataset = dataset_row(world, self.namespace, self.dataset, visible=True)
        if clock_interval(dataset.name) is not None:
            raise Invalid(f"{dataset.name} is a clock: its lots turn READY by themselves")
        if self.manifests and len(self.manifests) != len(self.lots):
            raise Invalid("there must be a manifest for each lot, or none at all")
        name = f"{dataset.namespace}/{dataset.name}"
        world.room(LotRoom).check_cut(dataset.id, name, self.lots)
        return register(
            world,
            dataset,
            self.lots,
            self.who,
            now,
            priority=self.priority,
            renew=self.renew,
            notes=dict(zip(self.lots, self.manifests, strict=False)),
        )


def register(
    world: World,
    dataset: DatasetRow,
    lots: Sequence[str],
    who: str,
    now: Micros,
    *,
    priority: int = 0,
    renew: bool = False,
    notes: Mapping[str, ManifestNote] = NO_NOTES,
) -> int:
    """Make lots READY, each with a version of its own; `notes` are their manifests, by lot."""
    room, outbox = world.room(LockRoom), world.room(LotRoom)
    lots = list(dict.fromkeys(map(check_lot, lots)))
    room.outputs.prefetch((dataset.id, lot) for lot in lots)
    fresh = [lot for lot in lots if is_news(room, dataset, lot, renew=renew)]
    if not fresh:
        return 0
    versions = _declare_versions(world, dataset, fresh, now)
    for lot, version in zip(fresh, versions, strict=True):
        was, status = _put_outside(room, dataset, lot, Status.READY, version, now)
        room.append(LogRow(now, "register", lot, None, dataset.id, None, was, status, who, ""))
        noted = {dataset.id: notes[lot]} if lot in notes else NO_NOTES
        held = (dataset.id,) if status != Status.READY else ()
        outbox.published(
            lot, {dataset.id: version}, now, notes=noted, job_id=None, run_id=None, held=held
        )
    rules.refresh_around(room, [dataset.id], fresh, now, dict.fromkeys(fresh, -priority))
    return len(fresh)


def announce(
    world: World, dataset: DatasetRow, lot: str, who: str, now: Micros, note: ManifestNote
) -> None:
    """Tell what there is of a lot from outside that is not whole yet: nobody reads it."""
    room, outbox = world.room(LockRoom), world.room(LotRoom)
    if not is_news(room, dataset, check_lot(lot), renew=True):
        return
    [version] = _declare_versions(world, dataset, [lot], now)
    was, status = _put_outside(room, dataset, lot, Status.PENDING, version, now)
    room.append(LogRow(now, "announce", lot, None, dataset.id, None, was, status, who, ""))
    outbox.put_manifest(version, dataset.id, lot, note, now)
    outbox.tell(LotEventKind.ANNOUNCED, dataset.id, lot, now, version_id=version, state=note.state)
    rules.refresh_around(room, [dataset.id], [lot], now)


def withdraw(
    world: World,
    dataset: DatasetRow,
    lot: str,
    who: str,
    why: str,
    now: Micros,
    notes: Mapping[str, ManifestNote],
) -> bool:
    """A lot from outside that was only announced will not come; False if it is not such a lot.

    `notes` are the manifests of its versions that say so, by version.
    """
    room, outbox = world.room(LockRoom), world.room(LotRoom)
    held = room.outputs.get((dataset.id, lot))
    is_held = held is not None and held.status == Status.HOLD
    if held is None or (held.held_from if is_held else held.status) != Status.PENDING:
        return False
    # No run holds or made what is not there: so it is told from a lot that could not be made.
    gone = {"held_from": Status.ERROR} if is_held else {"status": Status.ERROR, "since": now}
    after = replace(held, run_id=None, **gone)
    room.put_status(after)
    entry = (now, "remove", lot, None, dataset.id, None, held.status, after.status, who, why)
    room.append(LogRow(*entry))
    for version_id, note in notes.items():
        noted = outbox.manifests.get(version_id)
        if noted is not None:
            outbox.manifests.put(version_id, replace(noted, **msgspec.structs.asdict(note)))
    state = ManifestState.REMOVED
    outbox.tell(LotEventKind.REMOVED, dataset.id, lot, now, version_id=held.version_id, state=state)
    rules.refresh_around(room, [dataset.id], [lot], now)
    return True


def _put_outside(
    room: LockRoom, dataset: DatasetRow, lot: str, status: Status, version: str, now: Micros
) -> tuple[str, Status]:
    """The OUTPUT row of a lot from outside, and its status before and after.

    What somebody holds stays so; checks that failed were about the version before.
    """
    held = room.outputs.get((dataset.id, lot))
    row = StatusRow(dataset.id, lot, Role.OUTPUT, OUTSIDE, status, "", None, version, now)
    if held is not None and held.status == Status.HOLD:
        drop_reason(room, dataset.id, lot, QUALITY)
        if room.reasons.get((dataset.id, lot)) is not None:
            row = replace(row, status=Status.HOLD, held_from=status, since=held.since)
    room.put_status(row)
    return held.status if held is not None else "", row.status


def is_news(room: LockRoom, dataset: DatasetRow, lot: str, *, renew: bool) -> bool:
    """Whether to register a lot changes anything, or Conflict if it cannot be registered."""
    held = room.outputs.get((dataset.id, lot))
    if held is None or writable(Status(held.status)):
        return True
    is_held = held.status == Status.HOLD
    status = Status((held.held_from or Status.PENDING) if renew and is_held else held.status)
    if held.job_id == OUTSIDE and status is Status.PENDING:
        return True
    if held.job_id == OUTSIDE and status is Status.READY:
        return renew
    raise Conflict(
        f"lot {lot} of {dataset.namespace}/{dataset.name} is {held.status}: it is "
        f"{'held' if is_held else 'made by a job'}, and cannot be registered"
    )


def _declare_versions(
    world: World, dataset: DatasetRow, lots: Sequence[str], now: Micros
) -> list[str]:
    """A declared and published version for each lot; the last is the dataset's current one."""
    shown = dataset_rules.shown_version(world, dataset)
    schema = dataset_rules.schema_of(shown)
    before = shown if shown is not None and shown.published_at is not None else None
    now = dataset_rules.next_publication(dataset, now)
    stamps = write_stamps({LOT_FACET: event_stamp(now, "")})
    versions = []
    for number, lot in enumerate(lots):
        count, at = dataset.latest_number + number + 1, now + number
        version_id = ids.derived_id("lot", dataset.id, lot, str(count))
        version = replace(
            dataset_rules.new_version(
                dataset, version_id, count, Origin.DECLARED, None, schema, at
            ),
            facets=lot_facets(lot),
            stamps=stamps,
            published_at=at,
        )
        before = inherit(world, version, before)
        world.versions.put(before.id, before)
        versions.append(before.id)
    last = now + len(lots) - 1
    dataset_rules.follow_versions(world, dataset, versions[-1], len(versions), last)
    return versions

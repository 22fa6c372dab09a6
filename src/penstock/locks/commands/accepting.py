"""Accepting a lot whose checks failed: a person says that it is good all the same."""

from penstock.catalog.commands.lookup import dataset_row
from penstock.catalog.rows import replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.locks import holding, rules
from penstock.locks.commands.admin import Admin
from penstock.locks.held import QUALITY, drop_reason, tell_readable
from penstock.locks.room import LockRoom
from penstock.locks.rows import LogRow
from penstock.locks.table import Status
from penstock.lots.ids import check_lot
from penstock.lots.manifests import ManifestNote
from penstock.lots.room import LotRoom


class AcceptLot(Admin, frozen=True):
    """Let a lot be read although checks of it failed.

    `manifest` says that it is complete, where the one of `version` said that it is partial.
    """

    namespace: str
    dataset: str
    lot: str
    version: str
    manifest: ManifestNote | None = None

    def apply(self, world: World, now: Micros) -> None:
        """It is as it was, mostly READY, unless it is held for another reason too."""
        room = world.room(LockRoom)
        dataset = dataset_row(world, self.namespace, self.dataset)
        row = room.outputs.get((dataset.id, check_lot(self.lot)))
        where = f"lot {self.lot} of {self.namespace}/{self.dataset}"
        if row is None or not drop_reason(room, dataset.id, self.lot, QUALITY):
            raise Conflict(
                f"{where} is not held for checks that failed; there is nothing to accept"
            )
        if row.version_id != self.version:
            raise Conflict(f"{where} has got another version meanwhile; look at it again")
        if self.manifest is not None:
            world.room(LotRoom).put_manifest(self.version, dataset.id, self.lot, self.manifest, now)
        after = row
        if room.reasons.get((dataset.id, self.lot)) is None:
            # Since it was held, a newer input may have had it made again.
            after = replace(row, status=Status(row.held_from), held_from="", since=now)
            room.put_status(after)
            tell_readable(room, after, now)
        room.append(
            LogRow(
                now,
                "accept",
                self.lot,
                None,
                dataset.id,
                row.run_id,
                row.status,
                after.status,
                self.who,
                self.why,
            )
        )
        if after.status == Status.READY:
            holding.let_go(world, dataset, self.lot, self.who, self.why, now)
        rules.refresh_around(room, [dataset.id], [self.lot], now)
        self.record(world, now, "lot accept", f"dataset:{self.namespace}:{self.dataset} {self.lot}")

"""Calls of arcs, manifests, gaps, backfills and replays."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from penstock.client.request import (
    Request,
    call,
    delete,
    encode_json,
    get,
    gone,
    json_body,
    nothing,
    post,
    put,
)
from penstock.schema.arcs import ArcLotDetail, ArcLots, Arcs, ChangedDeclarations, ShownArc, Synced
from penstock.schema.arrivals import Arrivals, ShownArrival
from penstock.schema.gaps import Gaps
from penstock.schema.lots import LotManifest, RemovedLot
from penstock.schema.operations import (
    Backfill,
    BackfillList,
    BadLots,
    Begun,
    Replay,
    ReplayList,
    ReplayPlan,
    ReplaySteps,
)
from penstock.schema.shape import Empty
from penstock.states import ArcState, StepState

_PATH_NAMES = frozenset({"name", "namespace", "dataset"})


class ArcCalls:
    """Calls of arcs, manifests, gaps, backfills and arrivals.

    Declarations have the names of the settings file, in snake_case; an omitted field has its
    default. Calls with a reason need an administrator's key.
    """

    @call
    def arcs(self, namespace: str | None = None) -> Request[Arcs]:
        """The arcs, with the number of their lots in each state."""
        return get(Arcs, "arcs", namespace=namespace)

    @call
    def arc(self, namespace: str, arc: str) -> Request[ShownArc]:
        """One arc."""
        return get(ShownArc, *_arc(namespace, arc))

    @call
    def put_arc(
        self, namespace: str, arc: str, declaration: Mapping[str, Any]
    ) -> Request[ShownArc]:
        """Declare an arc, or change it."""
        body = _declared(declaration, _PATH_NAMES - {"dataset"})
        return put(ShownArc, *_arc(namespace, arc), body=body)

    @call
    def declare(
        self,
        arcs: Sequence[Mapping[str, Any]] = (),
        arrivals: Sequence[Mapping[str, Any]] = (),
        *,
        dry_run: bool = False,
    ) -> Request[ChangedDeclarations]:
        """Declare arcs and arrivals together: all of them, or nothing."""
        body = {"arcs": _camel(arcs), "arrivals": _camel(arrivals), "dryRun": dry_run}
        return post(ChangedDeclarations, "declarations", body=json_body(**body), repeatable=True)

    @call
    def delete_arc(self, namespace: str, arc: str) -> Request[None]:
        """Delete an arc; its job, its runs and its lots stay."""
        return delete(Empty, *_arc(namespace, arc)).then(nothing).settled(gone)

    @call
    def arc_lots(
        self,
        namespace: str,
        arc: str,
        *,
        state: ArcState | str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Request[ArcLots]:
        """List the lots of an arc in lot order, optionally in one state."""
        where = (*_arc(namespace, arc), "lots")
        return get(ArcLots, *where, state=state, after=after, limit=limit)

    @call
    def arc_lot(self, namespace: str, arc: str, lot: str) -> Request[ArcLotDetail]:
        """A lot of an arc: its parts, failed attempts and manifests."""
        return get(ArcLotDetail, *_arc(namespace, arc), "lots", lot)

    @call
    def clean_lot(self, namespace: str, arc: str, lot: str, why: str) -> Request[ArcLotDetail]:
        """Remove the output of failed attempts on a lot; a partial lot is missing afterwards."""
        where = (*_arc(namespace, arc), "lots", lot, "clean")
        return post(ArcLotDetail, *where, body=json_body(why=why))

    @call
    def sync_arc(
        self, namespace: str, arc: str, after: str | None = None, *, lots: int | None = None
    ) -> Request[Synced]:
        """Write state keys again, some lots at a time; go on after `next` until that is None."""
        where = (*_arc(namespace, arc), "sync")
        return post(Synced, *where, body=json_body(after=after, lots=lots), repeatable=True)

    @call
    def manifest(
        self,
        namespace: str,
        dataset: str,
        lot: str,
        *,
        version: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[LotManifest]:
        """The manifest of a lot; items come in pages."""
        where = (*_dataset(namespace, dataset), "lots", lot, "manifest")
        query: dict[str, Any] = {"version": version, "limit": limit, "offset": offset}
        return get(LotManifest, *where, **query)

    @call
    def remove_lot(
        self, namespace: str, dataset: str, lot: str, why: str, *, force: bool = False
    ) -> Request[RemovedLot]:
        """Remove the data of a lot; the manifest lists it, if an arc wrote it.

        `force` removes a lot without a manifest that jobs have read.
        """
        where = (*_dataset(namespace, dataset), "lots", lot, "remove")
        return post(RemovedLot, *where, body=json_body(why=why, force=force))

    @call
    def gaps(
        self,
        namespace: str,
        dataset: str,
        first: str | None = None,
        last: str | None = None,
        *,
        interval: str | None = None,
        causes: bool = True,
    ) -> Request[Gaps]:
        """The gaps of a dataset, in ranges with their causes."""
        where = (*_dataset(namespace, dataset), "gaps")
        query: dict[str, Any] = {"from": first, "to": last, "interval": interval, "causes": causes}
        return get(Gaps, *where, **query)

    @call
    def backfill(
        self,
        namespace: str,
        arc: str,
        first: str | None = None,
        last: str | None = None,
        *,
        lots: Sequence[str] = (),
        failed_and_missing: bool = False,
        all_lots: bool = False,
        stale: bool = False,
        newest_first: bool = False,
        max_running: int | None = None,
        interval: str | None = None,
        dry_run: bool = False,
        why: str = "",
    ) -> Request[Begun]:
        """Start to repair lots of an arc; with `dry_run`, only show what it would do.

        It repairs lots that failed or are missing, unless `stale` or `all_lots` adds others. Name
        a range or `lots`; lots with free ids need neither.
        """
        body = {
            "from": first,
            "to": last,
            "lots": list(lots),
            "failedAndMissing": failed_and_missing,
            "all": all_lots,
            "stale": stale,
            "newestFirst": newest_first,
            "maxRunning": max_running,
            "interval": interval,
            "dryRun": dry_run,
            "why": why,
        }
        where = (*_arc(namespace, arc), "backfills")
        return post(Begun, *where, body=json_body(**body), repeatable=dry_run)

    @call
    def backfills(self, limit: int = 100) -> Request[BackfillList]:
        """The last backfills, newest first."""
        return get(BackfillList, "backfills", limit=limit)

    @call
    def get_backfill(self, backfill_id: str) -> Request[Backfill]:
        """One backfill and its progress."""
        return get(Backfill, "backfills", backfill_id)

    @call
    def pause_backfill(self, backfill_id: str, why: str) -> Request[Backfill]:
        """Start no more lots of a backfill."""
        return _move(backfill_id, "pause", why)

    @call
    def resume_backfill(self, backfill_id: str, why: str) -> Request[Backfill]:
        """Resume a paused backfill."""
        return _move(backfill_id, "resume", why)

    @call
    def cancel_backfill(self, backfill_id: str, why: str) -> Request[Backfill]:
        """Stop a backfill for good."""
        return _move(backfill_id, "cancel", why)

    @call
    def arrivals(self, namespace: str | None = None) -> Request[Arrivals]:
        """All arrivals, by dataset."""
        return get(Arrivals, "arrivals", namespace=namespace)

    @call
    def arrival(self, namespace: str, dataset: str) -> Request[ShownArrival]:
        """The arrival of a dataset."""
        return get(ShownArrival, *_dataset(namespace, dataset), "arrival")

    @call
    def put_arrival(
        self, namespace: str, dataset: str, declaration: Mapping[str, Any]
    ) -> Request[ShownArrival]:
        """Declare the arrival of a dataset."""
        where = (*_dataset(namespace, dataset), "arrival")
        body = _declared(declaration, _PATH_NAMES)
        return put(ShownArrival, *where, body=body)

    @call
    def delete_arrival(self, namespace: str, dataset: str) -> Request[None]:
        """Delete the arrival of a dataset."""
        return delete(Empty, *_dataset(namespace, dataset), "arrival").then(nothing).settled(gone)


def _arc(namespace: str, arc: str) -> tuple[str, ...]:
    return "namespaces", namespace, "arcs", arc


def _dataset(namespace: str, dataset: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", dataset


def _move(backfill_id: str, move: str, why: str) -> Request[Backfill]:
    return post(Backfill, "backfills", backfill_id, move, body=json_body(why=why))


def _declared(declaration: Mapping[str, Any], left_out: Iterable[str]) -> bytes:
    """Return a declaration as JSON, without the names that are in the path."""
    fields = {key: value for key, value in declaration.items() if key not in left_out}
    return encode_json(_camel(fields))


def _camel(value: Any) -> Any:
    """Return a value with camelCase keys, except for names of environment variables."""
    if isinstance(value, Mapping):
        return {
            _camel_name(key): each if key == "environment" else _camel(each)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_camel(each) for each in value]
    return value


def _camel_name(name: str) -> str:
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


class ReplayCalls:
    """Calls of replays."""

    @call
    def plan_replay(self, bad: BadLots, *, at_once: int | None = None) -> Request[ReplayPlan]:
        """The plan of a replay: its steps in order, and their cost by past durations."""
        return get(ReplayPlan, "replays", "plan", **to_builtins(bad), atOnce=at_once)

    @call
    def start_replay(
        self, replay_id: str, bad: BadLots, *, why: str, max_running: int | None = None
    ) -> Request[Replay]:
        """Start a replay under an id that you choose; the same call again changes nothing."""
        body = json_body(why=why, maxRunning=max_running, **to_builtins(bad))
        return put(Replay, "replays", replay_id, body=body)

    @call
    def replays(self, limit: int = 100) -> Request[ReplayList]:
        """The last replays, newest first."""
        return get(ReplayList, "replays", limit=limit)

    @call
    def replay(self, replay_id: str) -> Request[Replay]:
        """One replay and its progress."""
        return get(Replay, "replays", replay_id)

    @call
    def replay_steps(
        self,
        replay_id: str,
        *,
        state: StepState | str | None = None,
        first: int = 1,
        limit: int = 100,
    ) -> Request[ReplaySteps]:
        """The steps of a replay in order, from a number on, optionally in one state."""
        where = "replays", replay_id, "steps"
        return get(ReplaySteps, *where, state=state, first=first, limit=limit)

    @call
    def pause_replay(self, replay_id: str, why: str) -> Request[Replay]:
        """Start no more steps of a replay."""
        return _move_replay(replay_id, "pause", why)

    @call
    def resume_replay(self, replay_id: str, why: str) -> Request[Replay]:
        """Resume a paused replay."""
        return _move_replay(replay_id, "resume", why)

    @call
    def cancel_replay(self, replay_id: str, why: str) -> Request[Replay]:
        """Stop a replay for good; steps that were not begun stay as they are."""
        return _move_replay(replay_id, "cancel", why)


def _move_replay(replay_id: str, move: str, why: str) -> Request[Replay]:
    where = "replays", replay_id, move
    return post(Replay, *where, body=json_body(why=why), repeatable=True)

"""Calls of arcs, manifests, gaps, backfills and replays."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from penstock.client.request import (
    Empty,
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
from penstock.states import ArcState, StepState

_PATH_NAMES = frozenset({"name", "namespace", "dataset"})


class ArcCalls:
    """What a server shows and does about arcs.

    Declarations have the names of the settings files, in snake_case; what is left out has its
    default. What asks for a reason is an administrator's.
    """

    @call
    def arcs(self, namespace: str | None = None) -> Request[Arcs]:
        """The arcs, with how many of their lots stand where."""
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
        """Declare arcs and arrivals, which have their names, together: all of them, or nothing."""
        body = {"arcs": _camel(arcs), "arrivals": _camel(arrivals), "dryRun": dry_run}
        return post(ChangedDeclarations, "declarations", body=json_body(**body), repeatable=True)

    @call
    def delete_arc(self, namespace: str, arc: str) -> Request[None]:
        """Forget an arc; its job, its runs and its lots stay."""
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
        """The lots of an arc by lot, all or those in a state."""
        where = (*_arc(namespace, arc), "lots")
        return get(ArcLots, *where, state=state, after=after, limit=limit)

    @call
    def arc_lot(self, namespace: str, arc: str, lot: str) -> Request[ArcLotDetail]:
        """Where an arc stands with a lot: parts, failed attempts, manifests."""
        return get(ArcLotDetail, *_arc(namespace, arc), "lots", lot)

    @call
    def clean_lot(self, namespace: str, arc: str, lot: str, why: str) -> Request[ArcLotDetail]:
        """Remove what failed attempts on a lot left behind: what was partial is missing then."""
        where = (*_arc(namespace, arc), "lots", lot, "clean")
        return post(ArcLotDetail, *where, body=json_body(why=why))

    @call
    def sync_arc(
        self, namespace: str, arc: str, after: str | None = None, *, lots: int | None = None
    ) -> Request[Synced]:
        """Make state keys anew, some lots at a time; go on after `next` until that is None."""
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
        """What a lot consists of; its items in pages."""
        where = (*_dataset(namespace, dataset), "lots", lot, "manifest")
        query: dict[str, Any] = {"version": version, "limit": limit, "offset": offset}
        return get(LotManifest, *where, **query)

    @call
    def remove_lot(
        self, namespace: str, dataset: str, lot: str, why: str, *, force: bool = False
    ) -> Request[RemovedLot]:
        """Remove a lot; the manifest lists what was removed, if the lot had data of ours.

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
        """Which lots of a dataset are not there, in ranges with their causes."""
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
        """How far a backfill is."""
        return get(Backfill, "backfills", backfill_id)

    @call
    def pause_backfill(self, backfill_id: str, why: str) -> Request[Backfill]:
        """Set no more lots of a backfill going."""
        return _move(backfill_id, "pause", why)

    @call
    def resume_backfill(self, backfill_id: str, why: str) -> Request[Backfill]:
        """Let a backfill that was paused go on."""
        return _move(backfill_id, "resume", why)

    @call
    def cancel_backfill(self, backfill_id: str, why: str) -> Request[Backfill]:
        """Stop a backfill for good."""
        return _move(backfill_id, "cancel", why)

    @call
    def arrivals(self, namespace: str | None = None) -> Request[Arrivals]:
        """Where the objects of datasets arrive, by name."""
        return get(Arrivals, "arrivals", namespace=namespace)

    @call
    def arrival(self, namespace: str, dataset: str) -> Request[ShownArrival]:
        """Where the objects of a dataset arrive."""
        return get(ShownArrival, *_dataset(namespace, dataset), "arrival")

    @call
    def put_arrival(
        self, namespace: str, dataset: str, declaration: Mapping[str, Any]
    ) -> Request[ShownArrival]:
        """Declare where the objects of a dataset arrive."""
        where = (*_dataset(namespace, dataset), "arrival")
        body = _declared(declaration, _PATH_NAMES)
        return put(ShownArrival, *where, body=body)

    @call
    def delete_arrival(self, namespace: str, dataset: str) -> Request[None]:
        """Watch a location no more."""
        return delete(Empty, *_dataset(namespace, dataset), "arrival").then(nothing).settled(gone)


def _arc(namespace: str, arc: str) -> tuple[str, ...]:
    return "namespaces", namespace, "arcs", arc


def _dataset(namespace: str, dataset: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", dataset


def _move(backfill_id: str, move: str, why: str) -> Request[Backfill]:
    return post(Backfill, "backfills", backfill_id, move, body=json_body(why=why))


def _declared(declaration: Mapping[str, Any], left_out: Iterable[str]) -> bytes:
    """A declaration as it is on the wire; the path has the names."""
    said = {key: value for key, value in declaration.items() if key not in left_out}
    return encode_json(_camel(said))


def _camel(value: Any) -> Any:
    """The same with camelCase keys; the names of variables are the user's own."""
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
    """What a server shows and does about replays: what was made from bad lots, made again."""

    @call
    def plan_replay(self, bad: BadLots, *, at_once: int | None = None) -> Request[ReplayPlan]:
        """What a replay would do: its steps in order, and their cost by past durations."""
        return get(ReplayPlan, "replays", "plan", **to_builtins(bad), atOnce=at_once)

    @call
    def start_replay(
        self, replay_id: str, bad: BadLots, *, why: str, max_running: int | None = None
    ) -> Request[Replay]:
        """Begin a replay under an id of your choice; the same again changes nothing."""
        body = json_body(why=why, maxRunning=max_running, **to_builtins(bad))
        return put(Replay, "replays", replay_id, body=body)

    @call
    def replays(self, limit: int = 100) -> Request[ReplayList]:
        """The last replays, newest first."""
        return get(ReplayList, "replays", limit=limit)

    @call
    def replay(self, replay_id: str) -> Request[Replay]:
        """How far a replay is."""
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
        """Steps of a replay in order, from a number on; those in a state, if it is named."""
        where = "replays", replay_id, "steps"
        return get(ReplaySteps, *where, state=state, first=first, limit=limit)

    @call
    def pause_replay(self, replay_id: str, why: str) -> Request[Replay]:
        """Set no more steps of a replay going."""
        return _move_replay(replay_id, "pause", why)

    @call
    def resume_replay(self, replay_id: str, why: str) -> Request[Replay]:
        """Let a replay that was paused go on."""
        return _move_replay(replay_id, "resume", why)

    @call
    def cancel_replay(self, replay_id: str, why: str) -> Request[Replay]:
        """Stop a replay for good; what was not begun stays as it was."""
        return _move_replay(replay_id, "cancel", why)


def _move_replay(replay_id: str, move: str, why: str) -> Request[Replay]:
    where = "replays", replay_id, move
    return post(Replay, *where, body=json_body(why=why), repeatable=True)

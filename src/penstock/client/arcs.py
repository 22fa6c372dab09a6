"""The calls of the client about arcs, manifests, gaps and backfills."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from penstock.client import arc_documents as docs
from penstock.client.lots import Call

ArcState = Literal["running", "complete", "partial", "missing"]
_PATH_NAMES = frozenset({"name", "namespace", "dataset"})


class ArcCalls:
    """What a server shows and does about arcs.

    Declarations have the names of the settings files, in snake_case; what is left out has its
    default. What asks for a reason is an administrator's.
    """

    _call: Call

    def arcs(self, namespace: str | None = None) -> docs.Arcs:
        """The arcs, with how many of their lots stand where."""
        return self._call("GET", docs.Arcs, "arcs", namespace=namespace)

    def arc(self, namespace: str, arc: str) -> docs.Arc:
        """One arc."""
        return self._call("GET", docs.Arc, *_arc(namespace, arc))

    def put_arc(self, namespace: str, arc: str, declaration: Mapping[str, Any]) -> docs.Arc:
        """Declare an arc, or change it."""
        body = _declared(declaration, _PATH_NAMES - {"dataset"})
        return self._call("PUT", docs.Arc, *_arc(namespace, arc), body=body)

    def delete_arc(self, namespace: str, arc: str) -> None:
        """Forget an arc; its job, its runs and its lots stay."""
        self._call("DELETE", Any, *_arc(namespace, arc))

    def arc_lots(
        self,
        namespace: str,
        arc: str,
        *,
        state: ArcState | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> docs.ArcLots:
        """The lots of an arc by lot, all or those in a state."""
        where = (*_arc(namespace, arc), "lots")
        return self._call("GET", docs.ArcLots, *where, state=state, after=after, limit=limit)

    def arc_lot(self, namespace: str, arc: str, lot: str) -> docs.ArcLotDetail:
        """Where an arc stands with a lot: parts, failed attempts, manifests."""
        return self._call("GET", docs.ArcLotDetail, *_arc(namespace, arc), "lots", lot)

    def clean_lot(self, namespace: str, arc: str, lot: str, why: str) -> docs.ArcLotDetail:
        """Remove what failed attempts on a lot left behind: what was partial is missing then."""
        where = (*_arc(namespace, arc), "lots", lot, "clean")
        return self._call("POST", docs.ArcLotDetail, *where, body=_body(why=why))

    def sync_arc(self, namespace: str, arc: str, after: str | None = None) -> docs.Synced:
        """Make state keys anew, some lots at a time; go on after `next` until that is None."""
        where = (*_arc(namespace, arc), "sync")
        return self._call("POST", docs.Synced, *where, body=_body(after=after))

    def manifest(
        self,
        namespace: str,
        dataset: str,
        lot: str,
        *,
        version: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> docs.LotManifest:
        """What a lot consists of; its items in pages."""
        where = (*_dataset(namespace, dataset), "lots", lot, "manifest")
        query: dict[str, Any] = {"version": version, "limit": limit, "offset": offset}
        return self._call("GET", docs.LotManifest, *where, **query)

    def gaps(
        self,
        namespace: str,
        dataset: str,
        first: str | None = None,
        last: str | None = None,
        *,
        interval: str | None = None,
        causes: bool = True,
    ) -> docs.Gaps:
        """Which lots of a dataset are not there, in ranges with their causes."""
        where = (*_dataset(namespace, dataset), "gaps")
        query: dict[str, Any] = {"from": first, "to": last, "interval": interval, "causes": causes}
        return self._call("GET", docs.Gaps, *where, **query)

    def backfill(
        self,
        namespace: str,
        arc: str,
        first: str | None = None,
        last: str | None = None,
        *,
        all_lots: bool = False,
        stale: bool = False,
        newest_first: bool = False,
        max_running: int | None = None,
        interval: str | None = None,
        dry_run: bool = False,
        why: str = "",
    ) -> docs.Begun:
        """Begin to repair the lots of an arc, or tell what would be done."""
        body = {
            "from": first,
            "to": last,
            "all": all_lots,
            "stale": stale,
            "newestFirst": newest_first,
            "maxRunning": max_running,
            "interval": interval,
            "dryRun": dry_run,
            "why": why,
        }
        where = (*_arc(namespace, arc), "backfills")
        return self._call("POST", docs.Begun, *where, body=_body(**body))

    def backfills(self, limit: int = 100) -> docs.Backfills:
        """The last backfills, newest first."""
        return self._call("GET", docs.Backfills, "backfills", limit=limit)

    def get_backfill(self, backfill_id: str) -> docs.Backfill:
        """How far a backfill is."""
        return self._call("GET", docs.Backfill, "backfills", backfill_id)

    def pause_backfill(self, backfill_id: str, why: str) -> docs.Backfill:
        """Set no more lots of a backfill going."""
        return self._move_backfill(backfill_id, "pause", why)

    def resume_backfill(self, backfill_id: str, why: str) -> docs.Backfill:
        """Let a backfill that was paused go on."""
        return self._move_backfill(backfill_id, "resume", why)

    def cancel_backfill(self, backfill_id: str, why: str) -> docs.Backfill:
        """Stop a backfill for good."""
        return self._move_backfill(backfill_id, "cancel", why)

    def _move_backfill(self, backfill_id: str, move: str, why: str) -> docs.Backfill:
        where = "backfills", backfill_id, move
        return self._call("POST", docs.Backfill, *where, body=_body(why=why))

    def arrival(self, namespace: str, dataset: str) -> docs.Arrival:
        """Where the objects of a dataset arrive."""
        return self._call("GET", docs.Arrival, *_dataset(namespace, dataset), "arrival")

    def put_arrival(
        self, namespace: str, dataset: str, declaration: Mapping[str, Any]
    ) -> docs.Arrival:
        """Declare where the objects of a dataset arrive."""
        where = (*_dataset(namespace, dataset), "arrival")
        body = _declared(declaration, _PATH_NAMES)
        return self._call("PUT", docs.Arrival, *where, body=body)

    def delete_arrival(self, namespace: str, dataset: str) -> None:
        """Watch a location no more."""
        self._call("DELETE", Any, *_dataset(namespace, dataset), "arrival")


def _arc(namespace: str, arc: str) -> tuple[str, ...]:
    return "namespaces", namespace, "arcs", arc


def _dataset(namespace: str, dataset: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", dataset


def _body(**fields: object) -> bytes:
    return msgspec.json.encode({key: each for key, each in fields.items() if each is not None})


def _declared(declaration: Mapping[str, Any], left_out: Iterable[str]) -> bytes:
    """A declaration as it is on the wire; the path has the names."""
    said = {key: value for key, value in declaration.items() if key not in left_out}
    return msgspec.json.encode(_camel(said))


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

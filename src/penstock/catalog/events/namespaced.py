"""Events that come with a key for one namespace, and their limits elsewhere.

A run may name datasets and a parent anywhere. It writes datasets of its own namespace and of those
granted to it; elsewhere its versions are unconfirmed. Other statements about other namespaces are
refused, or left out where clients send them with every run. See docs/adr/0028-grants-between-
namespaces.md.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar

import msgspec
from msgspec import Raw, Struct

from penstock.access.keys import Key
from penstock.catalog.entities.names import home
from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import Facets
from penstock.catalog.events.known_facets import ReportedAlias
from penstock.catalog.events.parse import DATASET, JOB, Event, Mention
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import Micros
from penstock.errors import Forbidden
from penstock.store.write_queue import Command


class Right(Enum):
    """What an event may do with a dataset that its run writes."""

    OWN = "own"  # everything
    LOTS = "lots"  # only make versions: the job is wired to write lots of the dataset
    NONE = "none"  # only report a version, which is not shown for the dataset


class WriteScope(Struct, frozen=True):
    """The scope of a key for one namespace: its own, granted and wired datasets."""

    namespace: str
    wired: frozenset[str] = frozenset()  # datasets that the job is wired to write lot by lot

    def may_write(self, uow: UnitOfWork, namespace: str) -> bool:
        """Return whether the namespace is the key's own or granted to it."""
        if namespace == self.namespace:
            return True
        return self.namespace in (uow.grants.get(namespace) or ())

    def right(self, uow: UnitOfWork, dataset_id: str, namespace: str) -> Right:
        """Return what the key may do with a dataset."""
        if self.may_write(uow, namespace):
            return Right.OWN
        return Right.LOTS if dataset_id in self.wired else Right.NONE


def may_write(uow: UnitOfWork, scope: WriteScope | None, namespace: str) -> bool:
    """Return whether a caller may write the datasets of a namespace."""
    return scope is None or scope.may_write(uow, namespace)


_read_symlinks = msgspec.json.Decoder(dict[str, Raw]).decode


class NamespacedEvent(Struct, frozen=True):
    """Receive an event with a key for one namespace.

    The owner of its runs and datasets is known only when the command executes.
    """

    exclusive: ClassVar[bool] = False

    key: Key
    event: Event
    receiving: Callable[[Event], Command[None]]  # the command for keys without a scope

    def prefetch(self, keys: RowKeys) -> None:
        """Add the keys that the unrestricted command needs; other rows are rarely needed."""
        self.receiving(self.event).prefetch(keys)

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Apply what the key may change, or raise Forbidden."""
        event, own = self.event, self.key.namespace
        assert own is not None, "other keys are not bound"
        scope = WriteScope(own)
        if event.kind == DATASET:
            assert event.dataset is not None, "a dataset event was checked to have one"
            self._check_declared(uow, scope, event.dataset)
        elif event.kind == JOB:
            self._check_described(uow, scope)
        else:
            self._check_run(uow)
        self.receiving(_without_foreign_names(uow, event, scope)).execute(uow, now)

    def _check_declared(self, uow: UnitOfWork, scope: WriteScope, mention: Mention) -> None:
        """Refuse a declaration of a dataset that the key may not write."""
        if not scope.may_write(uow, home(uow, mention)):
            raise Forbidden(
                f"key {self.key.name!r} is only for namespace {self.key.namespace!r}, and dataset "
                f"{mention.namespace}/{mention.name} belongs to another; use another key, or have "
                f"an administrator of that namespace grant it: "
                f"penstock namespaces grant NAMESPACE --to {self.key.namespace}"
            )

    def _check_described(self, uow: UnitOfWork, scope: WriteScope) -> None:
        """Refuse facets on datasets of others in a job event; names alone are allowed."""
        for mention in (*self.event.inputs, *self.event.outputs):
            if mention.facets and not scope.may_write(uow, home(uow, mention)):
                raise Forbidden(
                    f"key {self.key.name!r} is only for namespace {self.key.namespace!r}: a job "
                    f"event may name dataset {mention.namespace}/{mention.name}, which is in "
                    "another, but not describe it; leave out its facets, or use another key"
                )

    def _check_run(self, uow: UnitOfWork) -> None:
        """Refuse an event for a run of another namespace's job."""
        run = uow.runs.get(self.event.run_id)
        if run is None or run.job_id == self.event.job_id:
            return
        job = uow.jobs.get(run.job_id)
        assert job is not None, "a run always has its job"
        if job.namespace != self.key.namespace:
            raise Forbidden(
                f"key {self.key.name!r} is only for namespace {self.key.namespace!r}, and run "
                f"{run.id} belongs to a job in another: give each run an id of its own, "
                "see that its children name its job right, or use another key"
            )


def _without_foreign_names(uow: UnitOfWork, event: Event, scope: WriteScope) -> Event:
    """Return the event without second names that the key may not write."""

    def narrowed(mention: Mention) -> Mention:
        if "symlinks" not in mention.facets:
            return mention
        may_name = scope.may_write(uow, home(uow, mention))
        names = [
            name
            for name in known_facets.aliases(mention.facets)
            if may_name and scope.may_write(uow, name.namespace)
        ]
        return replace(mention, facets=_with_names(mention.facets, names))

    return replace(
        event,
        inputs=tuple(map(narrowed, event.inputs)),
        outputs=tuple(map(narrowed, event.outputs)),
        dataset=narrowed(event.dataset) if event.dataset is not None else None,
    )


def _with_names(facets: Facets, kept: Sequence[ReportedAlias]) -> Facets:
    """Return the facets with these second names only."""
    if len(kept) == len(known_facets.aliases(facets)):
        return facets
    others = {key: value for key, value in facets.items() if key != "symlinks"}
    if not kept:
        return others
    symlinks = _read_symlinks(facets["symlinks"]) | {"identifiers": Raw(msgspec.json.encode(kept))}
    return others | {"symlinks": Raw(msgspec.json.encode(symlinks))}

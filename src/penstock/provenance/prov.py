"""Provenance of lots as W3C PROV, in PROV-JSON.

A version of a lot is an entity and a collection of its files. A run is an activity. Owners of
claims, registrars and depositors are agents. A version of a job is the plan of its runs.
"""

from collections.abc import Mapping
from urllib.parse import quote

from penstock.schema.provenance import (
    Contents,
    Deposit,
    DepositedObject,
    LotVersion,
    Maker,
    Outside,
    Provenance,
)

Value = str | int | Mapping[str, str] | list[Mapping[str, str]]
Record = dict[str, Value]
Records = dict[str, Record]
Document = dict[str, Mapping[str, object]]

PREFIX = "urn:penstock:"
_KINDS = (
    "entity",
    "activity",
    "agent",
    "used",
    "wasGeneratedBy",
    "wasDerivedFrom",
    "wasAssociatedWith",
    "wasAttributedTo",
    "hadMember",
)


def to_prov(provenance: Provenance) -> Document:
    """Return the document; relations have names that are the same each time."""
    writer = _Writer({version.id for version in provenance.versions})
    for version in provenance.versions:
        writer.version(version)
    filled = {kind: records for kind, records in writer.records.items() if records}
    return {"prefix": {"penstock": PREFIX}, **filled}


class _Writer:
    def __init__(self, known: set[str]) -> None:
        self.records: dict[str, Records] = {kind: {} for kind in _KINDS}
        self._known = known
        self._said: set[tuple[str | None, ...]] = set()

    def version(self, version: LotVersion) -> None:
        name = _name("version", version.id)
        self._put(
            "entity",
            name,
            {
                "prov:type": _qualified("prov:Collection"),
                "prov:label": f"{version.namespace}/{version.dataset} {version.lot or ''}".strip(),
                "penstock:namespace": version.namespace,
                "penstock:dataset": version.dataset,
                "penstock:lot": version.lot,
                "penstock:number": version.number,
                "penstock:publishedAt": _time(version.published_at),
            },
        )
        if version.contents is not None:
            self._contents(name, version.contents)
        if version.run is not None:
            self._run(name, version.run, version)
        if version.outside is not None:
            self._outside(name, version.outside)
        for deposit in version.deposits:
            self._deposit(name, deposit, version.run)

    def _contents(self, name: str, contents: Contents) -> None:
        self._put(
            "entity",
            name,
            {
                "penstock:manifest": contents.key,
                "penstock:manifestDigest": f"sha-256:{contents.digest}",
                "penstock:state": str(contents.state),
                "penstock:files": contents.total_count,
                "penstock:bytes": contents.bytes,
            },
        )
        for file in contents.files:
            of_file = _name("file", quote(file.uri, safe=""))
            self._put(
                "entity",
                of_file,
                {
                    "prov:location": file.uri,
                    "penstock:size": file.size,
                    "penstock:digest": file.digest,
                    "penstock:part": file.part,
                    "penstock:ark": file.ark,
                },
            )
            self._relate("hadMember", {"prov:collection": name, "prov:entity": of_file})

    def _run(self, name: str, run: Maker, version: LotVersion) -> None:
        activity = _name("run", run.id)
        self._put(
            "activity",
            activity,
            {
                "prov:startTime": run.started_at,
                "prov:endTime": run.ended_at,
                "prov:label": f"{run.job.namespace}/{run.job.name}",
                "penstock:state": run.state,
                "penstock:attempt": run.attempt,
                "penstock:parts": run.parts or None,
            },
        )
        generation = {
            "prov:entity": name,
            "prov:activity": activity,
            "prov:time": version.published_at,
        }
        self._relate("wasGeneratedBy", generation)
        for read in version.inputs:
            source = _name("version", read)
            if read not in self._known:  # deeper than requested: only its name
                self._put("entity", source, {"penstock:isCut": "true"})
            self._relate("used", {"prov:activity": activity, "prov:entity": source})
            derived = {"prov:generatedEntity": name, "prov:usedEntity": source}
            self._relate("wasDerivedFrom", {**derived, "prov:activity": activity})
        self._plan(activity, run)

    def _plan(self, activity: str, run: Maker) -> None:
        agent = self._agent(run.owner or f"{run.job.namespace}/{run.job.name}", is_person=False)
        related: dict[str, str | None] = {"prov:activity": activity, "prov:agent": agent}
        if run.job_version is not None:
            plan = _name("job-version", run.job_version)
            self._put(
                "entity",
                plan,
                {
                    "prov:type": _qualified("prov:Plan"),
                    "prov:label": f"{run.job.namespace}/{run.job.name}",
                    "prov:location": run.location,
                },
            )
            related["prov:plan"] = plan
        self._relate("wasAssociatedWith", related)

    def _outside(self, name: str, outside: Outside) -> None:
        if outside.registered_by is not None:
            agent = self._agent(outside.registered_by, is_person=True)
            self._relate("wasAttributedTo", {"prov:entity": name, "prov:agent": agent})
        for arrived in outside.arrived:
            source = _name("file", quote(arrived.uri, safe=""))
            self._put(
                "entity",
                source,
                {
                    "prov:location": arrived.uri,
                    "penstock:size": arrived.size,
                    "penstock:mark": arrived.mark,
                },
            )
            self._derive(name, source)

    def _deposit(self, name: str, deposit: Deposit, run: Maker | None) -> None:
        batch = _name("batch", quote(deposit.batch, safe=""))
        attributes = {
            "prov:label": f"batch {deposit.batch}",
            "penstock:collection": deposit.collection,
        }
        self._put("entity", batch, attributes)
        self._derive(name, batch)
        agent = None
        if deposit.depositor is not None:
            agent = self._agent(deposit.depositor, is_person=True)
            self._relate("wasAttributedTo", {"prov:entity": batch, "prov:agent": agent})
        if agent is not None and run is not None:
            activity = _name("run", run.id)
            self._relate("wasAssociatedWith", {"prov:activity": activity, "prov:agent": agent})
        for stored in deposit.objects:
            self._object(name, batch, stored)

    def _object(self, name: str, batch: str, stored: DepositedObject) -> None:
        entity = _name("object", quote(f"{stored.ark}/v{stored.object_version}", safe=""))
        self._put(
            "entity",
            entity,
            {
                "prov:label": stored.ark,
                "prov:location": stored.location,
                "penstock:ark": stored.ark,
                "penstock:objectVersion": stored.object_version,
                "penstock:inventoryDigest": stored.digest and f"sha-512:{stored.digest}",
                "penstock:ingestJob": stored.ingest_job,
            },
        )
        self._derive(name, entity)
        self._derive(entity, batch)

    def _derive(self, derived: str, source: str) -> None:
        self._relate("wasDerivedFrom", {"prov:generatedEntity": derived, "prov:usedEntity": source})

    def _agent(self, who: str, *, is_person: bool) -> str:
        name = _name("agent", quote(who, safe=""))
        kind = "prov:Agent" if is_person else "prov:SoftwareAgent"
        if name not in self.records["agent"]:
            self._put("agent", name, {"prov:type": _qualified(kind), "prov:label": who})
        return name

    def _put(self, kind: str, name: str, attributes: Mapping[str, Value | None]) -> None:
        record = self.records[kind].setdefault(name, {})
        record.update({key: value for key, value in attributes.items() if value is not None})

    def _relate(self, kind: str, attributes: Mapping[str, str | None]) -> None:
        record: Record = {key: value for key, value in attributes.items() if value is not None}
        key = (kind, *attributes.values())
        if key not in self._said:
            self._said.add(key)
            self.records[kind][f"_:{kind}{len(self.records[kind]) + 1}"] = record


def _name(kind: str, key: str) -> str:
    """Return a qualified name; the caller quotes what a local part may not contain."""
    return f"penstock:{kind}/{key}"


def _qualified(name: str) -> Mapping[str, str]:
    return {"$": name, "type": "prov:QUALIFIED_NAME"}


def _time(text: str | None) -> Mapping[str, str] | None:
    return {"$": text, "type": "xsd:dateTime"} if text is not None else None

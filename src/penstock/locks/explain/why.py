"""Why a job does not work on a lot, in words and as data, down to the root causes.

A job's outputs have the lot ids of its inputs, so the whole chain is about one lot. Each level of
the chain costs the same few statements, however many jobs it has.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from penstock import ids
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.locks.explain import reasons
from penstock.locks.explain.causes import DEPTH_MAX, CauseGraph, CauseNode
from penstock.locks.explain.facts import (
    HoldEntry,
    LotContext,
    LotMaker,
    LotReader,
    LotWriter,
    WholeHold,
    WorkFacts,
)
from penstock.locks.hold_reasons import QUALITY
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.rows import ClockRow, GateOwnerRow, LotJobRow, ReasonsRow, WorkRow
from penstock.lots.rows import LandingRow
from penstock.schema.catalog import EntityId
from penstock.schema.locks import Why
from penstock.schema.lot_ids import CLOCK, check_lot
from penstock.states import WorkState


def explain_work(
    tx: Transaction, namespace: str, job: str, lot: str, now: Micros, *, only: str | None = None
) -> Why:
    """Explain what stops a job from working on a lot.

    With `only`, causes are followed inside that namespace; jobs elsewhere stay anonymous.
    """
    check_lot(lot)
    get_lot_job(tx, namespace, job)
    root = ids.job_id(namespace, job)
    nodes: dict[str, CauseNode] = {}
    level, seen = [root], {root}
    for _ in range(DEPTH_MAX):
        if not level:
            break
        following: list[str] = []
        for facts in _load(tx, level, lot, only):
            if only is not None and facts.job.namespace != only:
                continue
            causes = facts.waits_for
            nodes[facts.row.job_id] = CauseNode(facts, reasons.find_reasons(facts, now), causes)
            fresh = [cause for cause in causes if cause not in seen]
            seen.update(fresh)
            following += fresh
        level = following
    return CauseGraph(nodes, level).build()


def _load(tx: Transaction, job_ids: Sequence[str], lot: str, only: str | None) -> list[WorkFacts]:
    """Load the facts about a lot around these jobs."""
    jobs, work, turns = tx.fetch_many(
        [
            ("read_lot_jobs", {"ids": job_ids}),
            ("read_work_of_lot", {"ids": job_ids, "lot": lot}),
            ("read_turns_of_lot", {"ids": job_ids, "lot": lot}),
        ]
    )
    wirings = [(EntityId(row[0], row[1]), LotJobRow(*row[2:])) for row in jobs]
    datasets = list({d for _, row in wirings for d in (*row.input_ids, *row.output_ids)})
    pairs = [dataset + row.job_id for _, row in wirings for dataset in row.input_ids]
    names, makers, readers, writers, gates = tx.fetch_many(
        [
            ("read_dataset_names", {"ids": datasets}),
            ("read_makers_of_lot", {"ids": datasets, "lot": lot}),
            ("read_readers_of_lot", {"keys": pairs, "lot": lot}),
            ("read_writers_of_datasets", {"ids": datasets}),
            ("read_held_gates", {"ids": [*job_ids, *datasets]}),
        ]
    )
    name_of = {dataset: EntityId(space, name) for dataset, space, name in names}
    work_of = {row[0]: WorkRow(*row) for row in work}
    maker_of = {row[0]: LotMaker(*row[1:]).redact(only) for row in makers}
    by_dataset = _writers(writers, only)
    held_for = _held_for(tx, lot, maker_of, name_of)
    around = LotContext(
        lot=lot,
        names=name_of,
        makers=maker_of,
        writers=by_dataset,
        gates={row[0]: WholeHold(*row[1:]) for row in gates},
        stops=_stops(tx, lot, work_of, maker_of),
        clocks=_clocks(tx, name_of),
        landings=_landings(tx, [d for d in datasets if d not in by_dataset and d not in maker_of]),
        held_for=held_for,
    )
    reading: dict[str, dict[str, LotReader]] = defaultdict(dict)
    for dataset, job_id, status, version in readers:
        reading[job_id][dataset] = LotReader(status, version)
    keepers: dict[str, list[GateOwnerRow]] = defaultdict(list)
    for job_id, *keeper in turns:
        keepers[job_id].append(GateOwnerRow(*keeper))
    facts = {
        row.job_id: WorkFacts(
            job,
            row,
            work_of.get(row.job_id),
            reading[row.job_id],
            around,
            keepers[row.job_id],
        )
        for job, row in wirings
    }
    return [facts[job_id] for job_id in job_ids if job_id in facts]


def _writers(rows: Iterable[Row], only: str | None) -> dict[str, list[LotWriter]]:
    by_dataset: dict[str, list[LotWriter]] = defaultdict(list)
    for dataset, job_id, namespace, name, hidden in rows:
        writer = LotWriter(job_id, namespace, name, bool(hidden))
        by_dataset[dataset].append(writer.redact(only))
    return by_dataset


def _clocks(tx: Transaction, names: Mapping[str, EntityId]) -> dict[str, Micros]:
    """Load the end of the next interval of clocks, if any dataset is one."""
    clocks = [found for found, name in names.items() if name.name.startswith(CLOCK)]
    rows = tx.rows(ClockRow, "lot_clocks_by_ids", ids=clocks) if clocks else []
    return {row.dataset_id: row.due_at for row in rows}


def _landings(tx: Transaction, datasets: Sequence[str]) -> dict[str, LandingRow]:
    """Load the landings of missing datasets that no job makes."""
    rows = tx.rows(LandingRow, "lot_landings_by_ids", ids=datasets) if datasets else []
    return {row.dataset_id: row for row in rows}


def _held_for(
    tx: Transaction, lot: str, makers: Mapping[str, LotMaker], names: dict[str, EntityId]
) -> dict[str, Sequence[str]]:
    """Load the reasons of holds, by dataset; add the names of the reasons to `names`."""
    held = [dataset for dataset, maker in makers.items() if maker.is_held and maker.held_from]
    if not held:
        return {}
    rows = tx.rows(ReasonsRow, "read_reasons_of_lot", ids=held, lot=lot)
    others = {d for row in rows for d in row.reasons if d != QUALITY and d not in names}
    if others:
        found = tx.fetch("read_dataset_names", ids=sorted(others))
        names.update((dataset, EntityId(space, name)) for dataset, space, name in found)
    return {row.dataset_id: row.reasons for row in rows}


def _stops(
    tx: Transaction, lot: str, work: Mapping[str, WorkRow], makers: Mapping[str, LotMaker]
) -> dict[str, HoldEntry]:
    """Load the last hold of the lot, by job or dataset, if any is held."""
    jobs = [job for job, row in work.items() if row.state == WorkState.HELD]
    datasets = [dataset for dataset, maker in makers.items() if maker.is_held]
    if not jobs and not datasets:
        return {}
    rows = tx.fetch("read_holds_of_lot", lot=lot, jobs=jobs, datasets=datasets)
    return {job or dataset: HoldEntry(*stop) for job, dataset, *stop in rows}

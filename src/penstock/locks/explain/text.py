"""Descriptions of a missing input lot and of the jobs that can produce it."""

import shlex
from collections.abc import Sequence

from penstock.clock import say_time
from penstock.locks import quality
from penstock.locks.explain.facts import LotContext, LotMaker, LotWriter
from penstock.lots.rows import LandingRow
from penstock.schema.lots import Status


def because(error: str | None) -> str:
    """Format an error or a reason as the end of a sentence."""
    return f": {error}" if error else ""


def ask_why(namespace: str, job: str, lot: str) -> str:
    """Return the command that explains what a lot waits for."""
    return f"`{shlex.join(['penstock', 'why', f'{namespace}/{job}', lot])}` shows what it waits for"


def describe_status(around: LotContext, dataset: str, maker: LotMaker) -> tuple[str, str]:
    """Describe why a lot cannot be read: a kind, and a phrase."""
    since = say_time(maker.since)
    match Status(maker.status):
        case Status.RUNNING:
            holder = f", held by {maker.owner!r}" if maker.owner is not None else ""
            return "running", f"is being made by {maker.job}{holder} since {since}"
        case Status.ERROR if maker.is_removed:
            return "removed", f"was removed at {since}; {_describe_remake(around, dataset, maker)}"
        case Status.ERROR:
            tries = f" (try {maker.tries} of {maker.tries_max})" if maker.tries else ""
            failed = f"could not be made by {maker.job} since {since}{tries}"
            return "error", failed + because(maker.error) + _who_else(around, dataset, maker)
        case Status.RESUBMIT:
            again = f"is to be made again by {maker.job} since {since}"
            return "missing", again + _who_else(around, dataset, maker)
        case Status.HOLD if maker.is_spent and around.is_abandoned(dataset):
            return "held", f"is held since {since}: {_left_behind(around, dataset, maker)}"
        case Status.HOLD if maker.is_spent:
            others = _others(around, dataset, maker)
            then = f"; release this lot of the dataset for {others} to make it" if others else ""
            return "held", f"is held since {since}: {maker.job} is out of tries with it{then}"
        case Status.HOLD:
            stop = around.stops.get(dataset)
            who = f" by {stop.who!r}" if stop is not None else ""
            phrase = f"is held{who} since {since}{because(stop.why if stop else None)}"
            if stop is not None and stop.who == quality.WHO:
                phrase += "; accept it, or resubmit it"
            return "held", phrase
        case _:
            return "missing", f"is {maker.status} since {since}: announced, and not complete yet"


def describe_makers(around: LotContext, dataset: str) -> str:
    """Describe the jobs that can make a lot of a dataset, or what else to do."""
    if makers := around.list_makers(dataset):
        return f"{' or '.join(_jobs(makers))} has to make it"
    if deleted := around.writers.get(dataset):
        jobs = " and ".join(_jobs(deleted))
        return (
            f"{jobs}, which made such lots, was deleted; wire it again, wire another job to make "
            "them, or register the lot when it exists"
        )
    if (landing := around.landings.get(dataset)) is not None:
        return describe_arrivals(landing)
    return "no job here makes it; register it when it exists"


def describe_arrivals(landing: LandingRow) -> str:
    """Describe that objects arrive for a dataset, and the problems where they arrive."""
    phrase = "objects arrive for it, and become the lot when it closes"
    if landing.error:
        since = say_time(landing.failed_at)
        phrase += f"; their location cannot be read since {since}: {landing.error}"
    if landing.untaken:
        phrase += (
            f"; {landing.untaken} of them belong to no lot, such as {landing.example!r}: "
            f"{landing.reason}"
        )
    return phrase


def _who_else(around: LotContext, dataset: str, maker: LotMaker) -> str:
    """Describe the jobs that can make a lot besides, or instead of, its maker."""
    if around.is_abandoned(dataset):
        return f"; {describe_makers(around, dataset)}"
    others = _others(around, dataset, maker)
    return f"; {others} can make it as well" if others else ""


def _others(around: LotContext, dataset: str, maker: LotMaker) -> str:
    writers = [each for each in around.list_makers(dataset) if each.job_id != maker.job_id]
    return " or ".join(_jobs(writers))


def _jobs(writers: Sequence[LotWriter]) -> list[str]:
    """Name the jobs; hidden jobs count as one."""
    return list(dict.fromkeys(writer.job for writer in writers))


def _left_behind(around: LotContext, dataset: str, maker: LotMaker) -> str:
    deleted = maker.job_id in [writer.job_id for writer in around.writers.get(dataset, ())]
    what = "was deleted" if deleted else "does not make such lots any more"
    return (
        f"{maker.job}, which {what}, ran out of tries with it; release this lot of the dataset "
        "to continue"
    )


def _describe_remake(around: LotContext, dataset: str, maker: LotMaker) -> str:
    if maker.name is None:
        return "register it again when it exists"
    if around.is_abandoned(dataset):
        return describe_makers(around, dataset)
    return f"resubmit it for {maker.job} to make it again"

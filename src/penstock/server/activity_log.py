"""Log lines and spans of what callers do to lots, once it is committed."""

import logging
from collections.abc import Iterable, Sequence

from penstock.clock import Micros
from penstock.locks.commands import Claimed, Ended
from penstock.server.requests import RequestContext
from penstock.telemetry import logs, tracing

_log = logging.getLogger(__name__)


def claimed(context: RequestContext, found: Iterable[Claimed], began: Micros) -> None:
    """Lots that somebody works on now."""
    for claim in found:
        ids = {"lot": claim.lot, "run": claim.id, "job": f"{claim.namespace}/{claim.job}"}
        with logs.about(**ids, key=context.key.name):
            _log.info("lot %s is claimed by %s, try %d", claim.lot, claim.owner, claim.attempt)
        tracing.note("claim", began=began, **ids)


def ended(context: RequestContext, claims: Sequence[Ended], began: Micros, error: str = "") -> None:
    """What became of claims; those that were refused have changed nothing."""
    for end in claims:
        if end.refused is not None:
            continue
        dataset = ",".join(f"{name.namespace}/{name.name}" for name, _ in end.versions)
        ids = {"lot": end.lot, "run": end.id, "dataset": dataset}
        with logs.about(**ids, key=context.key.name):
            if error:
                _log.warning("lot %s failed and is %s: %s", end.lot, end.state, error)
            else:
                _log.info("lot %s is %s", end.lot, "published" if end.versions else end.state)
        tracing.note("claim.end", began=began, **ids)


def changed(context: RequestContext, what: str, **ids: str) -> None:
    """Something that was done to a job, a dataset or a lot by hand."""
    with logs.about(**ids, key=context.key.name):
        _log.info("%s by %s", what, context.key.name)

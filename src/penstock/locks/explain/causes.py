"""Chains of causes, told as a tree and by where they end; no SQL here.

Jobs wait for each other in diamonds and sometimes in rings. In the tree each is told with its
causes once, where it was found first, so that it stays as small as what was found.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from penstock.locks.explain import reasons
from penstock.locks.explain.facts import WorkFacts
from penstock.schema.locks import Reason, RootCause, Why
from penstock.states import WorkState

DEPTH_MAX = 50
ROOTS_MAX = 50
DESCRIBED_MAX = 5  # roots in one sentence


class CauseNode(Struct, frozen=True):
    """What stops one job, and whom it waits for."""

    facts: WorkFacts
    reasons: Sequence[Reason]
    waits_for: Sequence[str]

    @property
    def job(self) -> str:
        """Which it is, in words."""
        return f"job {self.facts.job.namespace}/{self.facts.job.name}"

    @property
    def sentence(self) -> str:
        """What stops it, in words."""
        return reasons.summary(self.facts, self.reasons)


# What a person has to end comes before what data, time or a worker will end.
_USEFUL = ("out_of_tries", "input_removed", "held", "input_held", "output_locked", "input", "later")


def _usefulness(root: RootCause) -> int:
    kinds = [reason.kind for reason in root.reasons]
    places = [
        place for place, start in enumerate(_USEFUL) for kind in kinds if kind.startswith(start)
    ]
    return min(places, default=len(_USEFUL))


def _root(node: CauseNode, sentence: str, own: Sequence[Reason]) -> RootCause:
    facts = node.facts
    return RootCause(facts.job.namespace, facts.job.name, facts.lot, sentence, own)


class CauseGraph:
    """Jobs that were looked at, by id, in the order they were found; the first is the one asked
    for. `unseen` were found last, too far away to be looked at.
    """

    def __init__(self, nodes: Mapping[str, CauseNode], unseen: Sequence[str]) -> None:
        self._nodes = nodes
        self._root = next(iter(nodes))
        self._causes = {
            job: [cause for cause in node.waits_for if cause in nodes]
            for job, node in nodes.items()
        }
        self._known = {*nodes, *unseen}
        self._cut = [job for job, node in nodes.items() if {*node.waits_for} & {*unseen}]
        self._found_by = {self._root: ""}
        for job, causes in self._causes.items():
            for cause in causes:
                self._found_by.setdefault(cause, job)

    def build(self) -> Why:
        """All of it, with the root causes."""
        sentence, roots = self._nodes[self._root].sentence, self._roots()
        if self._causes[self._root]:
            sentence += self._describe(roots)
        return replace(self._told(self._root, sentence), roots=roots)

    def _roots(self) -> list[RootCause]:
        """The jobs where chains end or that something else stops too, the most useful first."""
        if self._nodes[self._root].facts.state == WorkState.DONE:
            return []
        roots = []
        for job, node in self._nodes.items():
            causes = {*self._causes[job]}
            own = [each for each in node.reasons if not self._is_explained(node, each, causes)]
            if causes or job in self._cut:
                if own:
                    sentence = " ".join(reason.sentence for reason in own)
                    roots.append(_root(node, sentence, own))
            else:
                roots.append(_root(node, node.sentence, own))
        return sorted(roots, key=_usefulness)[:ROOTS_MAX]

    def _is_explained(self, node: CauseNode, reason: Reason, causes: set[str]) -> bool:
        """Whether other jobs, or another reason, say more than this reason of a job does."""
        if reason.kind in ("unknown_lot", "later"):
            return bool(causes) or len(node.reasons) > 1
        if reason.kind.startswith("input_") or reason.kind == "output_locked":
            return bool({*node.facts.leads_to(reason.namespace, reason.name)} & self._known)
        return False

    def _told(self, job: str, sentence: str, found_by: str = "") -> Why:
        node = self._nodes[job]
        is_here = self._found_by[job] == found_by
        causes = self._causes[job] if is_here else []
        missing = ""
        if not is_here and (self._causes[job] or job in self._cut):
            missing = " What it waits for is told elsewhere here."
        elif job in self._cut:
            missing = " What it waits for is too far away to be told here."
        return Why(
            namespace=node.facts.job.namespace,
            job=node.facts.job.name,
            lot=node.facts.lot,
            state=node.facts.state,
            runnable=node.facts.state == WorkState.READY and not node.reasons,
            sentence=sentence + missing,
            reasons=node.reasons,
            causes=[self._told(cause, self._nodes[cause].sentence, job) for cause in causes],
            followed=not missing,
        )

    def _describe(self, roots: Sequence[RootCause]) -> str:
        """Where the chains end, in words."""
        ends = [job for job, causes in self._causes.items() if not causes and job not in self._cut]
        said = [*dict.fromkeys(root.sentence for root in roots[:DESCRIBED_MAX])]
        if (rest := len(roots) - DESCRIBED_MAX) > 0:
            said.append(f"There are {rest} more.")
        if ring := self._ring([*ends, *self._cut]):
            first, *others = (self._nodes[job].job for job in ring)
            said.append(
                f"{first[0].upper()}{first[1:]} and {' and '.join(others)} wait for each other "
                f"with lot {self._nodes[self._root].facts.lot}; wire one of them otherwise, or "
                "register what one of them makes."
            )
        text = f" Root cause{'s' * (len(said) > 1)}: {' '.join(said)}" if said else ""
        if self._cut:
            jobs = " and ".join(self._nodes[job].job for job in self._cut)
            text += (
                f" It waits, through others, for more than {DEPTH_MAX} jobs in a row: ask why of "
                f"{jobs} to go on."
            )
        return text

    def _ring(self, ends: Sequence[str]) -> list[str]:
        """Jobs that wait for each other, so that no chain leads on from them; none if all do."""
        leading, last = set[str](), {*ends}
        while last:
            leading |= last
            last = {job for job, causes in self._causes.items() if last & {*causes}} - leading
        job = next((job for job in self._nodes if job not in leading), None)
        path: list[str] = []
        while job is not None and job not in path:
            path.append(job)
            job = self._causes[job][0]
        return path[path.index(job) :] if job is not None else []

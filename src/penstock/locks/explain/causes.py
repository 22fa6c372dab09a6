"""The graph of causes, shown as a tree with its root causes.

Jobs wait for each other in diamonds and sometimes in cycles. The tree shows the causes of each job
once, where it was found first, so that the tree stays as small as the graph.
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
    """A job with its reasons, and the jobs that it waits for."""

    facts: WorkFacts
    reasons: Sequence[Reason]
    waits_for: Sequence[str]

    @property
    def job(self) -> str:
        """The job, in words."""
        return f"job {self.facts.job.namespace}/{self.facts.job.name}"

    @property
    def sentence(self) -> str:
        """The reasons, in words."""
        return reasons.summarize(self.facts, self.reasons)


# A reason that a person must end comes before one that data, time or a worker will end.
_USEFUL = ("out_of_tries", "input_removed", "held", "input_held", "output_locked", "input", "later")


def _usefulness(root: RootCause) -> int:
    kinds = [reason.kind for reason in root.reasons]
    ranks = [rank for rank, start in enumerate(_USEFUL) for kind in kinds if kind.startswith(start)]
    return min(ranks, default=len(_USEFUL))


def _root(node: CauseNode, sentence: str, own_reasons: Sequence[Reason]) -> RootCause:
    facts = node.facts
    return RootCause(facts.job.namespace, facts.job.name, facts.lot, sentence, own_reasons)


class CauseGraph:
    """The jobs of a chain by id, in the order of discovery; the first is the one asked for.

    The jobs of `unseen` are too far away: their facts were not loaded.
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
        """Return the tree with the root causes."""
        sentence, roots = self._nodes[self._root].sentence, self._roots()
        if self._causes[self._root]:
            sentence += self._describe(roots)
        return replace(self._show(self._root, sentence), roots=roots)

    def _roots(self) -> list[RootCause]:
        """List the jobs where chains end or that have other reasons, the most useful first."""
        if self._nodes[self._root].facts.state == WorkState.DONE:
            return []
        roots = []
        for job, node in self._nodes.items():
            causes = {*self._causes[job]}
            own_reasons = [
                each for each in node.reasons if not self._is_explained(node, each, causes)
            ]
            if causes or job in self._cut:
                if own_reasons:
                    sentence = " ".join(reason.sentence for reason in own_reasons)
                    roots.append(_root(node, sentence, own_reasons))
            else:
                roots.append(_root(node, node.sentence, own_reasons))
        return sorted(roots, key=_usefulness)[:ROOTS_MAX]

    def _is_explained(self, node: CauseNode, reason: Reason, causes: set[str]) -> bool:
        """Whether other jobs, or another reason, explain more than this reason."""
        if reason.kind in ("unknown_lot", "later"):
            return bool(causes) or len(node.reasons) > 1
        if reason.kind.startswith("input_") or reason.kind == "output_locked":
            return bool({*node.facts.leads_to(reason.namespace, reason.name)} & self._known)
        return False

    def _show(self, job: str, sentence: str, found_by: str = "") -> Why:
        node = self._nodes[job]
        is_here = self._found_by[job] == found_by
        causes = self._causes[job] if is_here else []
        missing = ""
        if not is_here and (self._causes[job] or job in self._cut):
            missing = " Its causes are shown elsewhere in this answer."
        elif job in self._cut:
            missing = " Its causes are too far away to be shown here."
        return Why(
            namespace=node.facts.job.namespace,
            job=node.facts.job.name,
            lot=node.facts.lot,
            state=node.facts.state,
            runnable=node.facts.state == WorkState.READY and not node.reasons,
            sentence=sentence + missing,
            reasons=node.reasons,
            causes=[self._show(cause, self._nodes[cause].sentence, job) for cause in causes],
            followed=not missing,
        )

    def _describe(self, roots: Sequence[RootCause]) -> str:
        """Describe the root causes."""
        ends = [job for job, causes in self._causes.items() if not causes and job not in self._cut]
        sentences = [*dict.fromkeys(root.sentence for root in roots[:DESCRIBED_MAX])]
        if (rest := len(roots) - DESCRIBED_MAX) > 0:
            sentences.append(f"There are {rest} more.")
        if ring := self._ring([*ends, *self._cut]):
            first, *others = (self._nodes[job].job for job in ring)
            sentences.append(
                f"{first[0].upper()}{first[1:]} and {' and '.join(others)} wait for each other "
                f"with lot {self._nodes[self._root].facts.lot}; change the wiring of one of them, "
                "or register its output."
            )
        text = (
            f" Root cause{'s' * (len(sentences) > 1)}: {' '.join(sentences)}" if sentences else ""
        )
        if self._cut:
            jobs = " and ".join(self._nodes[job].job for job in self._cut)
            text += (
                f" The chain has more than {DEPTH_MAX} jobs: ask why {jobs} cannot run for the "
                "rest."
            )
        return text

    def _ring(self, ends: Sequence[str]) -> list[str]:
        """Return jobs that wait for each other in a cycle without an end, if any."""
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

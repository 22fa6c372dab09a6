"""Tables of moves: which state of a thing may follow which."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Generic, TypeVar

from penstock.errors import Conflict

S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, eq=False)
class Moves(Generic[S]):
    """The states of one kind of thing, and which may follow which.

    The first state in the table is where things begin. A move that is not in the table is refused.
    Moves in `by_hand` are an administrator's: those alone, unless the table has them too.
    """

    name: str
    table: Mapping[S, frozenset[S]]
    meanings: Mapping[S, str]
    repeatable: bool = False
    remark: str = ""
    by_hand: Mapping[S, frozenset[S]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("table", "meanings", "by_hand"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        states = set(type(self.initial))
        if set(self.table) != states or set(self.meanings) != states:
            raise ValueError(f"the {self.name} table does not list every state once")

    @cached_property
    def states(self) -> tuple[S, ...]:
        """Every state, in the order of the table."""
        return tuple(self.table)

    @cached_property
    def initial(self) -> S:
        """The state in which things begin."""
        return next(iter(self.table))

    @cached_property
    def terminal(self) -> frozenset[S]:
        """The states that nothing leaves."""
        return frozenset(state for state in self.table if not self._following(state))

    def allows(self, current: S, target: S, *, by_hand: bool = False) -> bool:
        """Whether this move is there, for an administrator or for what happens by itself."""
        moves = self.by_hand.get(current, frozenset()) if by_hand else self.table[current]
        return target in moves or (self.repeatable and current == target)

    def check(self, current: S, target: S, which: str = "", *, by_hand: bool = False) -> None:
        """Refuse a move that the table does not have; `which` names the thing."""
        if self.allows(current, target, by_hand=by_hand):
            return
        subject = f"{self.name} {which}" if which else f"the {self.name}"
        following = self._following(current)
        if target in following and by_hand:
            advice = "that comes by itself, and is not done by hand"
        elif target in following:
            advice = "that is an administrator's to do"
        elif following:
            advice = f"from {current} it can only become {_either(following)}"
        else:
            advice = f"{current} is final"
        raise Conflict(f"{subject} is {current} and cannot become {target}: {advice}")

    def sql_check(self, column: str) -> str:
        """The condition that a column holds one of these states."""
        quoted = ", ".join(f"'{state}'" for state in self.states)
        return f"{column} IN ({quoted})"

    def mermaid(self) -> str:
        """The table as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        for state in self.states:
            lines += [f"    {state} --> {self._shown(state, t)}" for t in self._following(state)]
        lines += [f"    {state} --> [*]" for state in self.states if state in self.terminal]
        return "\n".join(lines)

    def markdown(self) -> str:
        """The chapter of docs/states.md on this machine."""
        lines = [f"## {self.name.capitalize()}", ""]
        if self.remark:
            lines += [self.remark, ""]
        lines += ["```mermaid", self.mermaid(), "```", ""]
        lines += ["| state | meaning | may become |", "|---|---|---|"]
        for state in self.states:
            following = ", ".join(
                f"{target}{'' if target in self.table[state] else '*'}"
                for target in self._following(state)
            )
            following = following or "nothing: it is final"
            lines.append(f"| {state} | {self.meanings[state]} | {following} |")
        return "\n".join(lines) + "\n"

    def _following(self, state: S) -> list[S]:
        possible = self.table[state] | self.by_hand.get(state, frozenset())
        return [target for target in self.states if target in possible]

    def _shown(self, state: S, target: S) -> str:
        """A move in the diagram, with its mark if it is an administrator's."""
        return str(target) if target in self.table[state] else f"{target} : by hand"


def _either(states: list[S]) -> str:
    *others, last = states
    return f"{', '.join(others)} or {last}" if others else str(last)

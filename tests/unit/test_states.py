"""The transition tables and the text derived from them."""

from enum import StrEnum

import pytest

from penstock.errors import Conflict
from penstock.states import RUN, Moves, RunState


class Door(StrEnum):
    OPEN = "OPEN"
    SHUT = "SHUT"
    BRICKED = "BRICKED"


DOOR = Moves(
    "door",
    {
        Door.OPEN: frozenset({Door.SHUT}),
        Door.SHUT: frozenset({Door.OPEN, Door.BRICKED}),
        Door.BRICKED: frozenset(),
    },
    meanings={Door.OPEN: "to be walked through", Door.SHUT: "to be opened", Door.BRICKED: "gone"},
)


def test_a_refusal_names_thing_states_and_allowed_transitions() -> None:
    with pytest.raises(Conflict) as refusal:
        DOOR.check(Door.SHUT, Door.SHUT, which="of the barn")
    assert str(refusal.value) == (
        "door of the barn is SHUT and cannot become SHUT: "
        "from SHUT it can only become OPEN or BRICKED"
    )


def test_a_refusal_says_that_a_state_is_final() -> None:
    with pytest.raises(Conflict, match="FAILED and cannot become RUNNING: FAILED is final"):
        RUN.check(RunState.FAILED, RunState.RUNNING)


def test_repeating_a_state_is_refused_unless_the_table_allows_it() -> None:
    assert not DOOR.allows(Door.BRICKED, Door.BRICKED)
    assert RUN.allows(RunState.COMPLETED, RunState.COMPLETED)


def test_a_table_must_list_every_state() -> None:
    with pytest.raises(ValueError, match="the door table does not list every state"):
        Moves("door", {Door.OPEN: frozenset({Door.SHUT})}, meanings=DOOR.meanings)


def test_a_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        RUN.table[RunState.FAILED] = frozenset(RunState)  # type: ignore[index]
    assert RUN.table[RunState.FAILED] == frozenset()


def test_the_diagram_has_one_arrow_per_transition() -> None:
    assert DOOR.mermaid().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> OPEN",
        "    OPEN --> SHUT",
        "    SHUT --> OPEN",
        "    SHUT --> BRICKED",
        "    BRICKED --> [*]",
    ]


def test_the_page_explains_each_state_and_its_successors() -> None:
    chapter = DOOR.markdown()
    assert "| SHUT | to be opened | OPEN, BRICKED |" in chapter
    assert "| BRICKED | gone | none: the state is final |" in chapter


BY_HAND = Moves(
    "door",
    DOOR.table,
    meanings=DOOR.meanings,
    by_hand={Door.OPEN: frozenset({Door.SHUT}), Door.BRICKED: frozenset({Door.OPEN})},
)


@pytest.mark.parametrize(
    ("current", "target", "by_hand", "refusal"),
    [
        (Door.OPEN, Door.SHUT, False, None),
        (Door.OPEN, Door.SHUT, True, None),
        (Door.SHUT, Door.OPEN, False, None),
        (Door.SHUT, Door.OPEN, True, "Penstock makes this move itself; administrators cannot"),
        (Door.BRICKED, Door.OPEN, True, None),
        (Door.BRICKED, Door.OPEN, False, "only an administrator can make this move"),
    ],
)
def test_only_transitions_of_administrators_are_marked_manual(
    current: Door, target: Door, by_hand: bool, refusal: str | None
) -> None:
    assert BY_HAND.allows(current, target, by_hand=by_hand) is (refusal is None)
    if refusal is not None:
        with pytest.raises(Conflict, match=f"is {current} and cannot become {target}: {refusal}"):
            BY_HAND.check(current, target, by_hand=by_hand)

"""How a graph becomes lines: each node once, everything within the width."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from penstock.cli.drawing import ASCII, Label, Symbols, Tree, fit, shorten, symbols_for

Graph = Mapping[str, Sequence[str]]


def drawn(graph: Graph, root: str, width: int = 80) -> list[str]:
    tree = Tree(lambda node: Label("●", node), lambda node: graph.get(node, ()), Symbols(), width)
    return [line.plain for line in tree.draw(root)]


def test_a_chain_goes_deeper_line_by_line() -> None:
    assert drawn({"a": "b", "b": "c"}, "a") == ["└ ● b", "  └ ● c"]


def test_branches_are_in_the_order_of_their_names() -> None:
    assert drawn({"a": "cb", "b": "x", "c": "y"}, "a") == [
        "├ ● b",
        "│ └ ● x",
        "└ ● c",
        "  └ ● y",
    ]


def test_a_diamond_is_drawn_once_and_marked_where_it_is_met_again() -> None:
    assert drawn({"a": "bc", "b": "d", "c": "d", "d": "e"}, "a") == [
        "├ ● b",
        "│ └ ● d",
        "│   └ ● e",
        "└ ● c",
        "  └ ● d  ↑ drawn above",
    ]


def test_a_leaf_that_is_met_again_needs_no_mark() -> None:
    assert drawn({"a": "bc", "b": "d", "c": "d"}, "a")[-1] == "  └ ● d"


def test_a_cycle_is_marked_where_it_closes() -> None:
    assert drawn({"a": "b", "b": "a"}, "a") == ["└ ● b", "  └ ● a  ↻ cycle"]
    assert drawn({"a": "a"}, "a") == ["└ ● a  ↻ cycle"]


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.sets(st.sampled_from("abcdefgh"), max_size=4), max_size=8
    )
)
def test_every_edge_within_reach_is_one_line(graph: dict[str, set[str]]) -> None:
    edges = {node: sorted(beside) for node, beside in graph.items()}
    reached, frontier = {"a"}, ["a"]
    while frontier:
        fresh = [n for node in frontier for n in edges.get(node, ()) if n not in reached]
        reached.update(fresh)
        frontier = fresh
    assert len(drawn(edges, "a")) == sum(len(edges.get(node, ())) for node in reached)


@given(
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1),
    st.integers(0, 40),
    st.integers(30, 100),
)
def test_a_line_is_never_wider_than_the_terminal(name: str, indent: int, width: int) -> None:
    label = Label("■", name, (Text("V7"), Text("a namespace that is rather long")))
    line = fit(label, " " * min(indent, width - 30), "↻ cycle", "…", width)
    assert line.cell_len <= width
    assert line.plain.endswith("↻ cycle")


def test_details_that_do_not_fit_are_left_out_before_the_name_is_cut() -> None:
    label = Label("■", "marts.daily_revenue", (Text("V7"), Text("postgres://warehouse:5432")))
    assert fit(label, "", "", "…", 60).plain.endswith("V7  postgres://warehouse:5432")
    assert fit(label, "", "", "…", 40).plain == "■ marts.daily_revenue  V7"
    assert fit(label, "", "", "…", 18).plain == "■ marts.d…_revenue"


@pytest.mark.parametrize("width", range(3, 12))
def test_a_name_is_cut_in_its_middle(width: int) -> None:
    cut = shorten("abcdefghijkl", width, "…")
    assert cell_len(cut) <= width
    assert (cut[0], cut[-1]) == ("a", "l")
    assert "…" in cut


def test_a_wide_name_is_cut_by_its_width() -> None:
    assert cell_len(shorten("東京の注文データ一覧", 9, "…")) <= 9


def test_control_characters_never_reach_the_terminal() -> None:
    assert fit(Label("■", "a\x1b[31mb\nc"), "", "", "…", 80).plain == "■ a�[31mb c"


def test_symbols_fit_the_encoding() -> None:
    assert symbols_for("utf-8") == Symbols()
    assert symbols_for("ascii") == ASCII
    assert symbols_for("no such encoding") == ASCII

"""Descriptions of objects: the ERC text and the Dublin Core XML that are stored with them."""

import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.archive.metadata import Description, dublin_core, erc, format_anvl

ARK = "ark:/99999/fk4rx9d523"
DC = "{http://purl.org/dc/elements/1.1/}"
# Any text, half surrogate pairs and control characters too.
TEXTS = st.none() | st.text(st.characters(), max_size=20) | st.text("a% \r\n\x00\x85\ud800<&")


def elements(xml: bytes) -> list[tuple[str, str | None]]:
    return [(child.tag, child.text) for child in ElementTree.fromstring(xml)]


def test_an_erc_record_answers_the_four_questions() -> None:
    description = Description(who="Seneca, T.", what="Husky: Chicken", when="2009-09-01")
    assert erc(description, ARK, ["loc 1", "loc 2"]).decode().splitlines() == [
        "erc:",
        "who: Seneca, T.",
        "what: Husky: Chicken",
        "when: 2009-09-01",
        f"where: {ARK}",
        "where: loc 1",
        "where: loc 2",
    ]


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_missing_elements_are_unassigned(nothing: str | None) -> None:
    description = Description(who=nothing, what=nothing, when=nothing, where=nothing)
    assert erc(description, ARK, []).decode() == (
        f"erc:\nwho: (:unas)\nwhat: (:unas)\nwhen: (:unas)\nwhere: {ARK}\n"
    )


def test_where_the_depositor_keeps_it_comes_last_and_nothing_comes_twice() -> None:
    description = Description(where="http://h/shelf")
    record = erc(description, ARK, ["loc", ARK, "loc"]).decode()
    assert re.findall("(?m)^where: (.*)$", record) == [ARK, "loc", "http://h/shelf"]


def test_a_value_stays_on_its_line() -> None:
    description = Description(who="50%\nwhere: mine", what="a\r\nb\u2028c\x0cd\x85e\tf")
    lines = erc(description, ARK, ["x\ny"]).decode().splitlines()
    assert lines[1] == "who: 50%25%0Awhere: mine"
    assert lines[2] == "what: a%0D%0Ab%E2%80%A8c%0Cd%C2%85e\tf"
    assert lines[5] == "where: x%0Ay"


@given(TEXTS, TEXTS, st.lists(st.text(max_size=8), max_size=3))
def test_an_erc_record_is_read_back_line_by_line(
    who: str | None, where: str | None, local_ids: list[str]
) -> None:
    lines = erc(Description(who=who, where=where), ARK, local_ids).decode().splitlines()
    names = [line.partition(":")[0] for line in lines]
    assert names[:5] == ["erc", "who", "what", "when", "where"]
    assert set(names[5:]) <= {"where"}
    wanted = re.sub("[\ud800-\udfff]", "\ufffd", (who or "").strip())
    assert unquote(lines[1].partition(": ")[2]) == (wanted or "(:unas)")


def test_anvl_of_nothing_is_empty() -> None:
    assert format_anvl([]) == b""


def test_a_dublin_core_record_as_harvesters_read_it() -> None:
    description = Description(who="A & B", what="<Title>", when="2009")
    assert dublin_core(description, ARK, ["loc 1"]).decode() == (
        "<?xml version='1.0' encoding='UTF-8'?>\n"
        '<oai_dc:dc xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
        ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        ' xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/'
        ' http://www.openarchives.org/OAI/2.0/oai_dc.xsd">\n'
        "  <dc:title>&lt;Title&gt;</dc:title>\n"
        "  <dc:creator>A &amp; B</dc:creator>\n"
        "  <dc:date>2009</dc:date>\n"
        f"  <dc:identifier>{ARK}</dc:identifier>\n"
        "  <dc:identifier>loc 1</dc:identifier>\n"
        "</oai_dc:dc>\n"
    )


def test_missing_elements_are_not_in_dublin_core() -> None:
    xml = dublin_core(Description(what="\x00 \x00"), ARK, [])
    assert elements(xml) == [(f"{DC}identifier", ARK)]


def test_characters_that_xml_cannot_hold_are_left_out() -> None:
    xml = dublin_core(Description(what="a\x00b\x0bc\ud800d\ufffee\r\nf\rg\U0001f600"), ARK, [])
    assert elements(xml)[0] == (f"{DC}title", "abcde\nf\ng\U0001f600")


@given(TEXTS, TEXTS, TEXTS, st.lists(st.text(max_size=8), max_size=3))
def test_dublin_core_of_any_description_is_well_formed(
    who: str | None, what: str | None, where: str | None, local_ids: list[str]
) -> None:
    description = Description(who=who, what=what, where=where)
    found = elements(dublin_core(description, ARK, local_ids))
    assert (f"{DC}identifier", ARK) in found
    assert {tag for tag, _ in found} <= {f"{DC}title", f"{DC}creator", f"{DC}identifier"}
    assert all(text and text == text.strip() for _, text in found)

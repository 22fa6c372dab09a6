"""ARKs: spun from numbers here, and minted over HTTP by a service that may misbehave."""

import base64
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import Invalid, Unavailable
from penstock.ingest.archive.arks import BETANUMERIC, ark_of, check_character, spin
from penstock.ingest.archive.ezid import EzidMinter
from penstock.ingest.archive.metadata import Description

SHORTEST_IDS = 8410**2
NUMBERS = st.integers(0, 8410**4)
NOBODY = Description()
ARK = "ark:/99999/fk4rx9d523"
MINTED = (201, f"success: {ARK}")
# What a script has in place of an answer when the connection ends without one.
DROP = (0, "")


@pytest.mark.parametrize(
    "name",
    # As EZID itself has minted them, and the example in the specification of NOIDs.
    ["99999/fk4rx9d523", "99999/fk43f4wd4v", "99999/fk4tq65d6k", "13030/xf93gt2q"],
)
def test_the_check_character_is_the_one_that_ezid_gives(name: str) -> None:
    assert check_character(name[:-1]) == name[-1]


@pytest.mark.parametrize(
    ("number", "spun"),
    [
        (0, "000000"),
        (1, "000001"),
        (9, "000009"),
        (10, "000010"),
        (289, "0000z9"),
        (290, "000100"),
        (SHORTEST_IDS - 1, "zz9zz9"),
        (SHORTEST_IDS, "000000000"),
        (SHORTEST_IDS + 8410**3 - 1, "zz9zz9zz9"),
        (SHORTEST_IDS + 8410**3, "000000000000"),
    ],
)
def test_ids_grow_by_a_group_when_the_shorter_ones_are_used_up(number: int, spun: str) -> None:
    assert spin(number) == spun


@given(NUMBERS, NUMBERS)
def test_no_two_numbers_have_one_id(one: int, other: int) -> None:
    assert (spin(one) == spin(other)) == (one == other)


def test_a_number_below_0_has_no_id() -> None:
    with pytest.raises(Invalid, match="number -1 has no id"):
        spin(-1)


@given(NUMBERS, st.data())
def test_a_wrong_or_swapped_character_is_betrayed(number: int, data: st.DataObject) -> None:
    name = "99999/fk4" + spin(number)
    at = data.draw(st.integers(9, len(name) - 2))
    wrong = data.draw(st.sampled_from(BETANUMERIC))
    mistyped = name[:at] + wrong + name[at + 1 :]
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    assert (check_character(mistyped) == check_character(name)) == (mistyped == name)
    assert (check_character(swapped) == check_character(name)) == (swapped == name)


@pytest.mark.parametrize("shoulder", ["99999/fk4", "ark:/99999/fk4", "ark:99999/fk4"])
def test_a_number_has_one_ark_for_ever(shoulder: str) -> None:
    arks = [ark_of(shoulder, number) for number in (0, 1, 0, 2, 1)]
    assert arks[0] == arks[2] == "ark:/99999/fk4000000" + check_character("99999/fk4000000")
    assert arks[1] == arks[4]
    assert len(set(arks)) == 3


@pytest.mark.parametrize("shoulder", ["", "fk4", "99999/", "99999/fk", "99999/fk45", "99999/ark4"])
def test_a_shoulder_whose_ids_could_be_those_of_another_is_refused(shoulder: str) -> None:
    with pytest.raises(Invalid, match=r"cannot be minted on; .* for example ark:/99999/fk4"):
        ark_of(shoulder, 0)


class Ezid(ThreadingHTTPServer):
    """A server that gives the answers of a script, one after the other, the last for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.answers: list[tuple[int, str]] = []
        self.requests: list[tuple[str, str, str]] = []
        self.users: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answers(BaseHTTPRequestHandler):
    server: Ezid

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append((self.path, self.headers["Content-Type"], body))
        self.server.users.add(self.headers["Authorization"])
        answers = self.server.answers
        status, text = answers.pop(0) if len(answers) > 1 else answers[0]
        if status:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(text.encode())
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the requests are kept."""


@pytest.fixture
def ezid() -> Iterator[Ezid]:
    with Ezid() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False) as client:
        yield client


class Naps:
    """The waits that were asked for, none of them waited."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def minter_at(
    ezid: Ezid, client: httpx.Client, naps: Naps, target: str | None = None
) -> EzidMinter:
    return EzidMinter(
        "99999/fk4", ezid.url + "/", "apitest", "se:cret", client, target=target, sleep=naps
    )


def test_an_ark_is_reserved_with_its_description(ezid: Ezid, client: httpx.Client) -> None:
    ezid.answers = [MINTED]
    minter = minter_at(ezid, client, Naps(), "https://h/objects")
    description = Description(who="Proust, é", what="100%\n_status: public", when=" ")
    assert minter.mint(description) == ARK
    assert ezid.requests == [
        (
            "/shoulder/ark:/99999/fk4",
            "text/plain; charset=UTF-8",
            "_status: reserved\n_target: https://h/objects\n"
            "erc.who: Proust, é\nerc.what: 100%25%0A_status: public\n",
        )
    ]
    assert ezid.users == {"Basic " + base64.b64encode(b"apitest:se:cret").decode()}


@pytest.mark.parametrize(
    "answer",
    [f"success: {ARK}\n", "success: ark:99999/fk4rx9d523", f"success: {ARK} | ark:/99999/fk4other"],
)
def test_the_ark_is_found_in_every_form_of_the_answer(
    ezid: Ezid, client: httpx.Client, answer: str
) -> None:
    ezid.answers = [(201, answer)]
    assert minter_at(ezid, client, Naps()).mint(NOBODY) == ARK


def test_a_refusal_is_final_with_a_reason(ezid: Ezid, client: httpx.Client) -> None:
    ezid.answers = [(400, "error: bad request - no such shoulder\nmore")]
    with pytest.raises(Invalid) as caught:
        minter_at(ezid, client, Naps()).mint(NOBODY)
    assert str(caught.value) == (
        f"EZID at {ezid.url} answered 400 'error: bad request - no such shoulder' "
        "to POST /shoulder/ark:/99999/fk4; check the shoulder, the user and the password"
    )
    assert len(ezid.requests) == 1


@pytest.mark.parametrize("fault", [(500, "error: internal"), (503, ""), (429, "slowly"), DROP])
def test_a_fault_that_passes_is_waited_out(
    ezid: Ezid, client: httpx.Client, fault: tuple[int, str]
) -> None:
    ezid.answers = [fault, fault, MINTED]
    naps = Naps()
    assert minter_at(ezid, client, naps).mint(NOBODY) == ARK
    assert naps.seconds == [0.5, 1.0]
    assert len(ezid.requests) == 3


def test_a_fault_that_stays_ends_after_the_last_try(ezid: Ezid, client: httpx.Client) -> None:
    ezid.answers = [(503, "error: down for repairs")]
    naps = Naps()
    with pytest.raises(Unavailable) as caught:
        minter_at(ezid, client, naps).mint(NOBODY)
    assert str(caught.value) == (
        f"EZID at {ezid.url} answered 503 'error: down for repairs' "
        "to POST /shoulder/ark:/99999/fk4, at try 4; resume the job later"
    )
    assert naps.seconds == [0.5, 1.0, 2.0]
    assert len(ezid.requests) == 4


def test_a_connection_that_always_drops_ends_after_the_last_try(
    ezid: Ezid, client: httpx.Client
) -> None:
    ezid.answers = [DROP]
    with pytest.raises(Unavailable, match=r"did not answer .*disconnected.*, at try 4; resume"):
        minter_at(ezid, client, Naps()).mint(NOBODY)
    assert len(ezid.requests) == 4


def test_a_service_that_is_not_there_is_unavailable(client: httpx.Client) -> None:
    with Ezid() as server:
        url = server.url
    naps = Naps()
    minter = EzidMinter("99999/fk4", url, "u", "p", client, tries=2, sleep=naps)
    with pytest.raises(Unavailable, match=f"EZID at {url} did not answer .*, at try 2; resume"):
        minter.mint(NOBODY)
    assert naps.seconds == [0.5]


@pytest.mark.parametrize(
    "garbage",
    [
        (200, f"success: {ARK}"),
        (201, ""),
        (201, "<html>Please log in</html>"),
        (201, "success: "),
        (201, "success: doi:10.5072/FK2"),
        (201, f"failure: {ARK}"),
        (201, "success: ark:/99999/../../admin"),
        (201, "success: ark:/88888/fk4rx9d523"),
        (302, ""),
    ],
)
def test_an_answer_that_is_not_ezids_is_no_ark(
    ezid: Ezid, client: httpx.Client, garbage: tuple[int, str]
) -> None:
    ezid.answers = [garbage]
    with pytest.raises(Unavailable, match=f"EZID at {ezid.url} .*; check the address"):
        minter_at(ezid, client, Naps()).mint(NOBODY)
    assert len(ezid.requests) == 1


def test_an_ark_is_made_public(ezid: Ezid, client: httpx.Client) -> None:
    ezid.answers = [DROP, (200, f"success: {ARK}")]
    minter_at(ezid, client, Naps()).publish(ARK)
    assert [(path, body) for path, _, body in ezid.requests] == [
        (f"/id/{ARK}", "_status: public\n")
    ] * 2


@pytest.mark.parametrize("ark", ["", "fk4", "ark:/99999/../shoulder", "ark:/99999/a?b", "doi:10/x"])
def test_only_an_ark_can_be_made_public(ezid: Ezid, client: httpx.Client, ark: str) -> None:
    with pytest.raises(Invalid, match="is not an ARK; write it like"):
        minter_at(ezid, client, Naps()).publish(ark)
    assert ezid.requests == []


def test_an_answer_for_another_ark_is_not_taken_for_this_one(
    ezid: Ezid, client: httpx.Client
) -> None:
    ezid.answers = [(200, "success: ark:/99999/fk4other")]
    with pytest.raises(Unavailable, match="answered for ark:/99999/fk4other; check the address"):
        minter_at(ezid, client, Naps()).publish(ARK)


@pytest.mark.parametrize(
    "url",
    ["", "ezid.cdlib.org", "ftp://h", "http://", "http://u:secret@h", "http://h:x", "http://h?a"],
)
def test_an_address_that_cannot_be_one_is_refused_without_showing_it(
    client: httpx.Client, url: str
) -> None:
    with pytest.raises(Invalid, match="the address of EZID cannot be used") as caught:
        EzidMinter("99999/fk4", url, "u", "p", client)
    assert "secret" not in str(caught.value)


def test_a_shoulder_that_is_none_is_refused(client: httpx.Client) -> None:
    with pytest.raises(Invalid, match="is not one; write it like ark:/99999/fk4"):
        EzidMinter("fk4?x", "http://h", "u", "p", client)

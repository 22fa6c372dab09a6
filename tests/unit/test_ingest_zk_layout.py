"""Where things are in ZooKeeper, and what stands in its nodes."""

import json
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import Invalid
from penstock.ingest.models import (
    Configuration,
    IngestHold,
    IngestHoldKind,
    QueuePosition,
    Submission,
)
from penstock.ingest.queue.zookeeper.layout import (
    JOB_NODES,
    REPORT_BYTES_MAX,
    document,
    entry_name,
    entry_path,
    first_ops,
    hold_data,
    hold_path,
    is_batch_id,
    is_job_id,
    read_entry,
    read_hold,
    read_job,
    read_number,
    read_report,
    report_data,
)
from penstock.schema.ingest import PayloadType
from penstock.states import IngestState
from penstock.zookeeper import Create

numbers = st.integers(0, 10**10 - 1)
places = st.builds(
    QueuePosition, st.integers(0, 99), numbers.map(lambda number: f"jid{number:010}")
)


@given(places, places)
def test_entries_sort_as_places_do(one: QueuePosition, two: QueuePosition) -> None:
    assert (entry_name(one) < entry_name(two)) == (one < two)
    assert read_entry(entry_name(one)) == one


def test_an_entry_has_two_digits_of_priority() -> None:
    place = QueuePosition(5, "jid0000000001")
    assert entry_path(IngestState.PENDING, place) == "/jobs/states/pending/05-jid0000000001"


@pytest.mark.parametrize("name", ["5-jid0000000001", "05-jid1", "100-jid0000000001", "", "lock"])
def test_another_name_is_no_entry(name: str) -> None:
    assert read_entry(name) is None


@pytest.mark.parametrize(
    "text", ["", "bid1", "bid0000000001/x", "../bid0000000001", "bid00000000011"]
)
def test_only_an_id_is_one(text: str) -> None:
    assert not is_batch_id(text)
    assert not is_job_id(text.replace("bid", "jid"))


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_a_hold_is_one_node_whatever_it_is_called(name: str) -> None:
    hold = IngestHold(IngestHoldKind.COLLECTION, name, "ann", "why", 1_700_000_000_000_001)
    path = hold_path(hold.kind, name)
    child = path.removeprefix("/locks/collections/")
    assert "/" not in child
    assert child not in ("", ".", "..")
    assert unquote(child) == name
    assert read_hold(hold.kind, child, hold_data(hold), 0) == hold


def test_a_hold_is_at_the_queue_name() -> None:
    assert hold_path(IngestHoldKind.QUEUE, "ingest") == "/locks/queue/ingest"


def test_nodes_include_default_values() -> None:
    told = Submission(
        profile_name="p", submitter="s", payload_url="u", type=PayloadType.FILE, uid="1"
    )
    assert json.loads(document(told)) == {
        "profile_name": "p",
        "submitter": "s",
        "payload_url": "u",
        "type": "file",
        "submission_mode": "add",
        "clear": [],
        "uid": "1",
        "submitted_at": 0,
    }
    configuration = Configuration(
        batch_id="b",
        profile_name="p",
        submitter="s",
        payload_url="u",
        payload_type=PayloadType.FILE,
        working_dir="/w",
        row=0,
        key="k",
        payload_name="n",
    )
    assert json.loads(document(configuration))["response_type"] == "none"


@pytest.mark.parametrize("size", [2, REPORT_BYTES_MAX, REPORT_BYTES_MAX + 1, 4_000_000])
def test_a_report_is_packed_only_if_it_is_large(size: int) -> None:
    report = '"' + "é" * ((size - 2) // 2) + '"'
    data = report_data(report)
    assert len(data) <= REPORT_BYTES_MAX
    assert read_report(data, "/batches/bid0000000001") == report
    assert (data == report.encode()) == (len(report.encode()) <= REPORT_BYTES_MAX)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"status": "asleep"}'])
def test_an_unreadable_node_is_named(data: bytes) -> None:
    with pytest.raises(
        Invalid, match=r"^/jobs/jid0000000001/status cannot be read: .*ingest check"
    ):
        read_job("jid0000000001", 0, {**dict.fromkeys(JOB_NODES), "status": data}, "")


def test_a_missing_number_names_its_node() -> None:
    with pytest.raises(Invalid, match=r"^/x does not exist, although its status does"):
        read_number(None, "/x")


def test_an_empty_queue_has_a_folder_for_every_state() -> None:
    made = {op.path for op in first_ops() if isinstance(op, Create)}
    assert {f"/jobs/states/{state}" for state in IngestState} - made == {"/jobs/states/deleted"}

"""What has to wait is passed by others, and is tried again when there are none."""

from msgspec.structs import replace

from penstock.ingest.values import (
    Configuration,
    Identifiers,
    IngestJob,
    PayloadType,
)
from penstock.ingest.waiting import Waiting, Walk
from penstock.states import IngestState

AT_ONCE = 2


def job(number: int) -> IngestJob:
    configuration = Configuration(
        batch_id="bid0000000001",
        profile_name="maps",
        submitter="jo",
        payload_url="http://h/a",
        payload_type=PayloadType.FILE,
        working_dir="/work",
        row=number,
        key=f"k/{number}",
        payload_name="a",
    )
    return IngestJob(
        id=f"jid{number:010}",
        configuration=configuration,
        identifiers=Identifiers(),
        status=IngestState.PROCESSING,
        last_modified=0,
        priority=5,
    )


class Stage:
    """A queue of jobs, and a daemon that tries those that it chooses."""

    def __init__(self, count: int) -> None:
        self.seconds = 0.0
        self.queue = [job(number) for number in range(count)]
        self.waiting: Waiting[IngestJob] = Waiting(lambda: self.seconds)
        self.walk = Walk(self.waiting)

    def round(self) -> list[int]:
        behind = self.walk.behind
        ready = [each for each in self.queue if behind is None or each.place > behind]
        chosen = self.walk.choose(ready[:AT_ONCE], AT_ONCE)
        for each in chosen:
            self.waiting.note(each, 5)
        return [each.configuration.row for each in chosen]


def test_every_job_is_tried_before_any_is_tried_again() -> None:
    stage = Stage(5)
    tried = [stage.round() for _ in range(5)]
    assert [each for each in tried if each] == [[0, 1], [2, 3], [4]]
    stage.seconds = 5
    again = [stage.round() for _ in range(4)]
    assert next(each for each in again if each) == [0, 1]


def test_nothing_is_tried_again_before_its_time() -> None:
    stage = Stage(1)
    assert [stage.round() for _ in range(3)] == [[0], [], []]
    stage.seconds = 5
    assert stage.round() == [0]


def test_a_new_job_is_tried_before_those_that_wait() -> None:
    stage = Stage(3)
    while any(stage.round() for _ in range(3)):
        pass
    stage.seconds = 60
    stage.queue.append(replace(job(3), priority=99))
    assert next(filter(None, (stage.round() for _ in range(3)))) == [3]


def test_all_are_tried_again_when_one_has_gone_on() -> None:
    stage = Stage(2)
    stage.round()
    stage.waiting.forget(job(9))
    assert stage.round() == []
    stage.waiting.forget(stage.queue.pop(0))
    assert [stage.round() for _ in range(2)][-1] == [1]

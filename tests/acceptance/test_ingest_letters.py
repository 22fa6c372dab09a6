"""Letters that a mail server does not take at once, or for some of their addresses only."""

import pytest

from penstock.clock import DAY, SECOND
from penstock.ingest.models import Batch
from penstock.ingest.notifications import letters
from penstock.ingest.notifications.letters import ClaimLetter, due_letters
from penstock.ingest.notifications.mail import MailLetter
from penstock.ingest.stages import STAGE_NAMES
from penstock.states import BatchState
from tests.acceptance.ingest_site import DEPOSITOR, Site
from tests.doors.waiting import until
from tests.mail import NO_SUCH_MAILBOX
from tests.web import content

TO = ("anna@example.org", "ben@example.org", "carl@example.org")


@pytest.fixture
def refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ben is refused for good, and Carl at the first try."""
    site.make_collection(mail=TO, callback=None, callback_secret=None)
    site.mail.refuse("ben@example.org")
    site.mail.defer("carl@example.org")

    send = site.context.outbound.mailer.send

    def send_once(letter: MailLetter) -> bool:
        try:
            return send(letter)
        finally:
            site.mail.recover()
            site.mail.refuse("ben@example.org")

    monkeypatch.setattr(site.context.outbound.mailer, "send", send_once)


@pytest.mark.usefixtures("refused")
def test_a_retry_sends_a_letter_only_to_open_addresses(site: Site) -> None:
    [batch] = site.run(site.deposit(site.web.on("/a.csv", content(b"a"))))
    assert batch.status is BatchState.COMPLETED
    assert site.mail.recipients == [("anna@example.org",), ("carl@example.org",)]
    assert batch.message == (
        f"the mail to ben@example.org was not sent: ben@example.org: {NO_SUCH_MAILBOX}"
    )


def _completed(site: Site) -> Batch:
    site.make_collection(callback=None, callback_secret=None)
    [batch] = site.run(site.deposit(site.web.on("/a.csv", content(b"a"))))
    assert batch.status is BatchState.COMPLETED
    return batch


def test_a_report_is_delivered_after_the_mail_server_was_down(site: Site) -> None:
    site.mail.defer()
    batch = _completed(site)
    assert f"the mail to {DEPOSITOR} is not sent yet: " in batch.message
    assert "it is tried again until " in batch.message
    assert site.letters() == []

    site.mail.recover()
    site.clock.ahead = 3600 * SECOND
    with site.working("batch-reporting"):
        until(lambda: site.batch(batch).message == "")

    assert site.letters() == [f"[Penstock] batch {batch.id} of maps: 1 completed, 0 failed"]
    site.clock.ahead = DAY
    assert letters.go_round(site.context) == 0


def test_a_report_is_delivered_although_its_worker_was_killed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """What kill -9 leaves undone."""

    def killed(letter: MailLetter) -> bool:
        raise Killed

    site.make_collection(callback=None, callback_secret=None)
    with site.working(*(name for name in STAGE_NAMES if not name.startswith("batch-rep"))):
        batch = site.deposit(site.web.on("/a.csv", content(b"a")))
        until(lambda: site.batch(batch).status is BatchState.REPORTING)
    letter = MailLetter((DEPOSITOR,), "hello", "text", f"{batch.id}.x.y")
    with monkeypatch.context() as patch:
        patch.setattr(site.context.outbound.mailer, "send", killed)
        with pytest.raises(Killed):
            letters.send(site.context, batch.id, letter)

    site.clock.ahead = 3600 * SECOND
    assert letters.go_round(site.context) == 1

    assert site.letters() == ["hello"]
    site.run(batch)


def test_a_letter_is_abandoned_after_days_with_a_message(site: Site) -> None:
    site.mail.defer()
    batch = _completed(site)

    site.clock.ahead = 6 * DAY
    assert letters.go_round(site.context) == 1

    assert f"the mail to {DEPOSITOR} was not sent: " in site.batch(batch).message
    assert "tried again until" not in site.batch(batch).message
    site.clock.ahead = 12 * DAY
    assert letters.go_round(site.context) == 0


def test_two_workers_do_not_send_one_letter_twice(site: Site) -> None:
    site.mail.defer()
    _completed(site)
    site.clock.ahead = 3600 * SECOND
    site.mail.recover()
    with site.plane.catalog.read() as tx:
        [waiting] = due_letters(tx, site.clock(), 10)

    taken = [site.plane.catalog.submit(ClaimLetter(waiting)).result() for _ in range(2)]

    assert taken == [True, False]

"""Letters that a mail server takes for some of their addresses only."""

import pytest

from penstock.ingest.telling.mail import Letter
from penstock.states import BatchState
from tests.acceptance.ingest_site import Site
from tests.mail import NO_SUCH_MAILBOX
from tests.web import content

TO = ("anna@example.org", "ben@example.org", "carl@example.org")


@pytest.fixture
def refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ben is refused for good, and Carl at the first try."""
    site.make_collection(mail=TO, callback=None, callback_secret=None)
    site.mail.refuse("ben@example.org")
    site.mail.tempfail("carl@example.org")

    send = site.shop.mailer.send

    def send_once(letter: Letter) -> bool:
        try:
            return send(letter)
        finally:
            site.mail.behave()
            site.mail.refuse("ben@example.org")

    monkeypatch.setattr(site.shop.mailer, "send", send_once)


@pytest.mark.usefixtures("refused")
def test_nobody_gets_a_letter_twice_because_others_were_refused_for_now(site: Site) -> None:
    [batch] = site.run(site.deposit(site.web.on("/a.csv", content(b"a"))))
    assert batch.status is BatchState.COMPLETED
    assert site.mail.recipients == [("anna@example.org",), ("carl@example.org",)]
    assert batch.message == (
        f"the mail to ben@example.org was not sent: ben@example.org: {NO_SUCH_MAILBOX}"
    )

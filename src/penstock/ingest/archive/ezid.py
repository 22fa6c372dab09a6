"""ARKs from an EZID service."""

import re
import time
from collections.abc import Callable

import httpx

from penstock.errors import Invalid, Unavailable
from penstock.ingest.archive.arks import NAAN, read_ark
from penstock.ingest.archive.metadata import Description, format_anvl

_MESSAGE_CHARS_MAX = 200
_BACKOFF_SECONDS = 0.5
_AGAIN = {408, 425, 429}
_SHOULDER = re.compile(f"ark:/{NAAN}/[0-9A-Za-z]*")


class EzidMinter:
    """A client of an EZID service.

    EZID reserves an ARK first and publishes it later. So if an answer is lost and the call
    repeated, the lost ARK is never published.
    """

    def __init__(
        self,
        shoulder: str,
        url: str,
        user: str,
        password: str,
        client: httpx.Client,
        *,
        target: str | None = None,
        tries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._shoulder = "ark:/" + shoulder.removeprefix("ark:").removeprefix("/")
        self._url = _checked_url(url)
        self._auth = httpx.BasicAuth(user, password)
        self._client = client
        self._target = target
        self._tries = tries
        self._sleep = sleep
        if not _SHOULDER.fullmatch(self._shoulder):
            raise Invalid(f"shoulder {shoulder!r} is not one; write it like ark:/99999/fk4")

    def mint(self, description: Description) -> str:
        """Reserve the next ARK of the shoulder; the caller has to store it at once."""
        pairs = [("_status", "reserved")]
        if self._target is not None:
            pairs.append(("_target", self._target))
        elements = {
            "erc.who": description.who,
            "erc.what": description.what,
            "erc.when": description.when,
            "erc.where": description.where,
        }
        pairs += [(name, value) for name, value in elements.items() if value and value.strip()]
        ark = self._post(f"/shoulder/{self._shoulder}", format_anvl(pairs), expected=201)
        if not ark.startswith(self._shoulder):
            raise Unavailable(
                f"EZID at {self._url} minted {ark}, which is not on {self._shoulder}; "
                "check the address and the shoulder"
            )
        return ark

    def publish(self, ark: str) -> None:
        """Publish a reserved ARK; a repetition is harmless."""
        ark = read_ark(ark)
        published = self._post(f"/id/{ark}", format_anvl([("_status", "public")]), expected=200)
        if published != ark:
            raise Unavailable(
                f"EZID at {self._url} was to publish {ark} and answered for {published}; "
                "check the address"
            )

    def _post(self, path: str, body: bytes, *, expected: int) -> str:
        """Return the ARK in the answer; retry temporary faults."""
        what = "was not asked"
        for tried in range(self._tries):
            if tried:
                self._sleep(_BACKOFF_SECONDS * 2 ** (tried - 1))
            try:
                answer = self._client.post(
                    self._url + path,
                    content=body,
                    headers={"Content-Type": "text/plain; charset=UTF-8"},
                    auth=self._auth,
                    follow_redirects=False,
                )
            except httpx.HTTPError as fault:
                what = f"did not answer ({_plain(str(fault) or type(fault).__name__)})"
                continue
            what = f"answered {answer.status_code} {_plain(answer.text)} to POST {path}"
            if answer.status_code < 500 and answer.status_code not in _AGAIN:
                return self._ark(answer, expected, f"EZID at {self._url} {what}")
        raise Unavailable(f"EZID at {self._url} {what}, at try {self._tries}; resume the job later")

    def _ark(self, answer: httpx.Response, expected: int, what: str) -> str:
        """Read the ARK in `success: ark:/…`; other names may follow after a bar."""
        if 400 <= answer.status_code < 500:
            raise Invalid(f"{what}; check the shoulder, the user and the password")
        outcome, _, rest = answer.text.partition(":")
        try:
            ark = read_ark(rest.partition("|")[0].strip())
        except Invalid:
            ark = ""
        if answer.status_code != expected or outcome.strip() != "success" or not ark:
            raise Unavailable(f"{what}, and not {expected} with an ARK; check the address")
        return ark


def _checked_url(url: str) -> str:
    """Return the service's URL without a final slash; refuse a URL with a password."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL()
    if parts.scheme not in {"http", "https"} or not parts.host or parts.userinfo or parts.query:
        raise Invalid(
            "the address of EZID cannot be used; write it like https://ezid.cdlib.org, "
            "and give the user and the password apart"
        )
    return url.rstrip("/")


def _plain(text: str) -> str:
    """Quote the first line of an answer for a message."""
    first = next(iter(text.strip().splitlines()), "")
    return repr(first[:_MESSAGE_CHARS_MAX])

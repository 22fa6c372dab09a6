"""The backend that OPENLINEAGE_URL names: a subscriber that follows the settings by itself."""

import ipaddress
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from penstock.access.secrets import Secrets
from penstock.config import Settings
from penstock.errors import Conflict, NotFound
from penstock.lots.rows import SubscriberRow
from penstock.schema.subscribers import SubscriberKind
from penstock.store.write_queue import WriteQueue
from penstock.subscribers.commands import (
    DeleteSubscriber,
    SetSubscriber,
    check_secret,
    load_subscribers,
)

log = logging.getLogger(__name__)

NAME = "OPENLINEAGE_URL"  # of the subscriber, which nobody sets by hand
_WHO = "settings"
_PORTS = {"http": 80, "https": 443}


def follow_settings(
    catalog: WriteQueue,
    settings: Settings,
    secrets: Secrets,
    *,
    own_url: str = "",
    may_forget: bool = True,
) -> None:
    """Have the backend that the settings name told of our runs, or none if they name none.

    A server says its own URL, which is not told what it knows. Whoever may have other settings
    than the servers must not forget what those have set.
    """
    url = settings.openlineage_url
    if url is not None and own_url and _leads_to(url, own_url):
        log.warning("%s is this server itself, and is not told of its own runs", NAME)
        url = None
    with catalog.read() as tx:
        held = next((row for row in load_subscribers(tx) if row.name == NAME), None)
    if url is None:
        if held is not None and may_forget:
            with suppress(NotFound):  # another server was quicker
                catalog.submit(DeleteSubscriber(_WHO, NAME)).result()
            log.info("%s is told of our runs no more", held.url)
        return
    target, secret = urljoin(url, settings.openlineage_endpoint), settings.openlineage_api_key
    kind = SubscriberKind.OPENLINEAGE
    if held is None or (held.kind, held.url, _revealed(held, secrets)) != (kind, target, secret):
        sealed = None if secret is None else secrets.seal(check_secret(secret))
        catalog.submit(SetSubscriber(_WHO, NAME, kind, target, sealed)).result()
        log.info("%s is told of our runs", target)


def _revealed(held: SubscriberRow, secrets: Secrets) -> str | None:
    """The secret that is stored; an empty text if its key is not here."""
    if held.secret is None:
        return None
    try:
        return secrets.reveal(held.secret)
    except Conflict:
        return ""


def check_not_managed(name: str) -> None:
    """The subscriber of the settings is changed there, and nowhere else."""
    if name == NAME:
        raise Conflict(
            f"subscriber {NAME} follows the settings: set {NAME} where the server runs and start "
            "it again, or give your subscriber another name"
        )


def _leads_to(url: str, own_url: str) -> bool:
    """Whether a call of one URL is answered by whoever listens at the other."""
    there, here = urlsplit(url), urlsplit(own_url)
    if (there.port or _PORTS.get(there.scheme)) != here.port:
        return False
    found = set(_addresses(there.hostname or ""))
    own = set(_addresses(here.hostname or ""))
    if any(address.is_unspecified for address in own):
        return any(_is_of_this_machine(address) for address in found)
    return bool(found & own)


def _addresses(host: str) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return
    for *_, address in found:
        yield ipaddress.ip_address(str(address[0]).partition("%")[0])


def _is_of_this_machine(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Only an address that this machine has can be listened on here."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True

"""The subscriber of OPENLINEAGE_URL, which follows the settings."""

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

NAME = "OPENLINEAGE_URL"  # the name of the subscriber, which only the settings change
_WHO = "settings"
_PORTS = {"http": 80, "https": 443}


def follow_settings(
    catalog: WriteQueue,
    settings: Settings,
    secrets: Secrets,
    *,
    own_url: str = "",
    may_delete: bool = True,
) -> None:
    """Subscribe the backend of the settings, or delete the subscriber if they name none.

    A server passes its own URL, so that it never subscribes to itself. A process whose settings may
    differ from those of the servers must not delete the subscriber.
    """
    url = settings.openlineage_url
    if url is not None and own_url and _leads_to(url, own_url):
        log.warning("%s is this server itself; no subscriber is created", NAME)
        url = None
    with catalog.read() as tx:
        held = next((row for row in load_subscribers(tx) if row.name == NAME), None)
    if url is None:
        if held is not None and may_delete:
            with suppress(NotFound):  # another server was faster
                catalog.submit(DeleteSubscriber(_WHO, NAME)).result()
            log.info("subscriber deleted url=%s", held.url)
        return
    target, secret = urljoin(url, settings.openlineage_endpoint), settings.openlineage_api_key
    kind = SubscriberKind.OPENLINEAGE
    if held is None or (held.kind, held.url, _revealed(held, secrets)) != (kind, target, secret):
        sealed = None if secret is None else secrets.seal(check_secret(secret))
        catalog.submit(SetSubscriber(_WHO, NAME, kind, target, sealed)).result()
        log.info("subscriber set url=%s", target)


def _revealed(held: SubscriberRow, secrets: Secrets) -> str | None:
    """Decrypt the stored secret; return an empty text if its key is missing."""
    if held.secret is None:
        return None
    try:
        return secrets.reveal(held.secret)
    except Conflict:
        return ""


def check_not_managed(name: str) -> None:
    """Refuse a change of the subscriber that follows the settings."""
    if name == NAME:
        raise Conflict(
            f"subscriber {NAME} follows the settings: set {NAME} for the server and restart it, "
            "or use another name for your subscriber"
        )


def _leads_to(url: str, own_url: str) -> bool:
    """Whether a server that listens at one URL answers calls of the other."""
    there, here = urlsplit(url), urlsplit(own_url)
    if (there.port or _PORTS.get(there.scheme)) != here.port:
        return False
    targets = set(_addresses(there.hostname or ""))
    own = set(_addresses(here.hostname or ""))
    if any(address.is_unspecified for address in own):
        return any(_is_of_this_machine(address) for address in targets)
    return bool(targets & own)


def _addresses(host: str) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return
    for *_, address in found:
        yield ipaddress.ip_address(str(address[0]).partition("%")[0])


def _is_of_this_machine(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether this machine has an address: only its own addresses can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True

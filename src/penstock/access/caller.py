"""The network address of the caller, for the audit log.

The address follows a call through its tasks and threads. It is empty for a process that opens the
database itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from penstock.errors import Invalid

_address: ContextVar[str] = ContextVar("caller_address", default="")

UNKNOWN = "unknown"  # a caller that a proxy names in an unreadable form

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def caller_address() -> str:
    """Return the address of the caller, or an empty text."""
    return _address.get()


@contextmanager
def called_from(address: str) -> Iterator[None]:
    """Attribute the work in this block to a caller at this address."""
    token = _address.set(address)
    try:
        yield
    finally:
        _address.reset(token)


def parse_address(text: str) -> Address | None:
    """Read an IP address as headers write it, with or without a port; None if it is not one."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # A socket for both families reports IPv4 callers in this form.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


class Proxies:
    """The proxies whose X-Forwarded-For header is trusted."""

    def __init__(self, setting: str | None = None) -> None:
        self._networks = [_network(part) for part in (setting or "").split(",") if part.strip()]

    def include(self, address: str) -> bool:
        """Return whether this address belongs to a configured proxy."""
        if not self._networks:
            return False
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def caller_behind(self, peer: str, forwarded_for: str) -> str:
        """Return the address of the caller behind a proxy.

        The header is read from its end, where trusted proxies write. Everything before the first
        address of another host was sent by the caller and proves nothing.
        """
        caller = peer
        for part in reversed(forwarded_for.split(",")):
            if not self.include(caller):
                break
            parsed = parse_address(part)
            if parsed is None:
                return UNKNOWN
            caller = str(parsed)
        return caller


def _network(text: str) -> Network:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise Invalid(
            f"proxies: {text.strip()[:100]!r} is not an IP address or a network; write for example "
            'proxies = "127.0.0.1, 10.0.0.0/8"'
        ) from None

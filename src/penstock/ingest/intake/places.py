"""The URLs that may be fetched: the public web, and places that a collection lists.

The rules here need no network. `outbound` checks at connect that the address of a host is public,
because the address of a name can change at any time.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, unquote_to_bytes, urlsplit

from msgspec import Struct

from penstock.errors import Invalid

if TYPE_CHECKING:
    import httpx

WEB_PORTS = {"http": 80, "https": 443}
SCHEMES = ("http", "https", "s3", "file")

_USERINFO = re.compile(r"^([^:/?#]+:)?//[^/?#]*@")
# All public IPv6 addresses are in this block. Addresses that embed an IPv4 address (mapped,
# compatible, NAT64) are outside; 6to4 and Teredo are inside.
_PUBLIC_6 = IPv6Network("2000::/3")
_DOCUMENTATION_6 = IPv6Network("3fff::/20")
_RELAY_4 = IPv4Network("192.88.99.0/24")


class Places(Struct, frozen=True):
    """URL prefixes that a collection allows in addition to the public web."""

    prefixes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for prefix in self.prefixes:
            _check_shape(prefix)
            if "?" in prefix or "#" in prefix:
                raise Invalid(
                    f"the place {redact_url(prefix)} has a query; give a prefix of the path"
                )

    def covers(self, url: str) -> bool:
        """Whether a prefix allows this URL: scheme, host, port and whole path segments."""
        return any(_covers(prefix, url) for prefix in self.prefixes)

    def holds(self, path: Path) -> bool:
        """Whether a listed folder contains a local path that has no symbolic links."""
        return any(
            urlsplit(prefix).scheme == "file" and path.is_relative_to(file_path(prefix))
            for prefix in self.prefixes
        )


def check_url(url: str, places: Places) -> None:
    """Raise Invalid for a URL that may not be fetched, as far as that is known without network."""
    scheme = _check_shape(url)
    if places.covers(url):
        return
    if scheme not in WEB_PORTS:
        raise not_allowed(url, f"{scheme} URLs are fetched from listed places only")
    host = _read(url).host
    if _is_address(host) and not is_public(host):
        raise not_allowed(url, f"{host} is not a public address")


def not_allowed(url: str, reason: str) -> Invalid:
    """Build the error for a URL that a collection's places could allow."""
    return Invalid(
        f"{redact_url(url)} may not be fetched: {reason}; "
        "if it should be, add it to the collection's places"
    )


def redact_url(url: str) -> str:
    """Return the URL without password, query and control characters, for messages."""
    bare = _USERINFO.sub(r"\1//", re.split(r"[?#]", url, maxsplit=1)[0])
    return "".join(letter if letter.isprintable() else "�" for letter in bare)[:1000]


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        tunnelled = ip.sixtofour is not None or ip.teredo is not None
        return ip in _PUBLIC_6 and ip.is_global and not tunnelled and ip not in _DOCUMENTATION_6
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and ip not in _RELAY_4


def file_path(url: str) -> Path:
    """Return the path of a file URL, with symbolic links resolved."""
    return Path(realpath(unquote_to_bytes(urlsplit(url).path).decode("utf-8", "surrogateescape")))


def bucket_and_key(url: str) -> tuple[str, str]:
    """Return the bucket and the percent-decoded key of an s3 URL."""
    parts = urlsplit(url)
    return parts.netloc, unquote(parts.path).removeprefix("/")


def _check_shape(url: str) -> str:
    """Refuse what is no URL of a known scheme, and return its scheme in lower case."""
    try:
        parsed, split = _read(url), urlsplit(url)
        port = parsed.port
    except ValueError as error:
        raise Invalid(f"{redact_url(url)} is not a URL: {error}; correct it") from None
    scheme = split.scheme
    if scheme not in SCHEMES or scheme != parsed.scheme:
        raise Invalid(f"{redact_url(url)} may not be fetched; use {', '.join(SCHEMES)}")
    if parsed.userinfo or "@" in split.netloc:
        raise Invalid(
            f"{redact_url(url)} has a user name or password in it; remove it from the URL"
        )
    if not parsed.host and scheme != "file":
        raise Invalid(f"{redact_url(url)} names no {'bucket' if scheme == 's3' else 'host'}")
    if port is not None and (scheme not in WEB_PORTS or not 0 < port < 65536):
        raise Invalid(f"{redact_url(url)} has a port that cannot be")
    if scheme not in WEB_PORTS and (split.query or split.fragment):
        raise Invalid(f"{redact_url(url)} has a ? or # in it; write them as %3F and %23")
    if scheme == "file" and not _is_file(split):
        raise Invalid(f"{redact_url(url)} is not a file of this machine; write it as file:///path")
    return scheme


def _is_file(url: SplitResult) -> bool:
    here = url.netloc in ("", "localhost")
    return here and url.path.startswith("/") and "%00" not in url.path


def _covers(prefix: str, url: str) -> bool:
    prefix_parts, url_parts = urlsplit(prefix), urlsplit(url)
    if prefix_parts.scheme != url_parts.scheme:
        return False
    if url_parts.scheme == "file":
        return file_path(url).is_relative_to(file_path(prefix))
    if url_parts.scheme == "s3":
        return prefix_parts.netloc == url_parts.netloc and _is_below(
            prefix_parts.path, url_parts.path
        )
    listed, wanted = _read(prefix), _read(url)
    return (
        listed.host == wanted.host
        and _port(listed) == _port(wanted)
        and _is_below(listed.raw_path.decode(), wanted.raw_path.split(b"?")[0].decode())
    )


def _is_below(above: str, asked: str) -> bool:
    prefix, segments = _segments(above.removesuffix("/")), _segments(asked)
    return segments[: len(prefix)] == prefix and not any(map(_may_climb, segments))


def _may_climb(segment: str) -> bool:
    """Whether a server may treat a segment as a step to the parent.

    Servers and their proxies decode percent-encoding, sometimes twice, and some cut parameters from
    a segment: they read `..;x` as `..`.
    """
    while True:
        name = segment.partition(";")[0].strip()
        if name in (".", "..") or "/" in segment or "\\" in segment:
            return True
        decoded = unquote(segment)
        if decoded == segment:
            return False
        segment = decoded


def _segments(path: str) -> Sequence[str]:
    inside = path.removeprefix("/")
    return [unquote(segment) for segment in inside.split("/")] if inside else []


def _read(url: str) -> "httpx.URL":
    """Parse the URL as the client does, so that both see the same host."""
    # Imported late: httpx slows the start of a server that fetches nothing.
    import httpx

    try:
        return httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Invalid(f"{redact_url(url)} is not a URL: {error}; correct it") from None


def _port(url: "httpx.URL") -> int:
    return url.port or WEB_PORTS[url.scheme]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True

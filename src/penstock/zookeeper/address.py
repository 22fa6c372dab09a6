"""The address of a ZooKeeper ensemble: `zookeeper://host:2181,host2:2181/chroot`."""

import re
from typing import Self
from urllib.parse import unquote

from msgspec import Struct

from penstock.errors import Invalid

PORT = 2181
_FORM = "write zookeeper://host:2181/folder, with more hosts after commas"
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_SEGMENT = re.compile(r"[^\x00-\x20\x7f-\x9f/?#\ud800-\uf8ff\ufff0-\uffff]+")


class Address(Struct, frozen=True):
    """The servers, the root node of this application, and the account."""

    hosts: tuple[str, ...]  # each with its port
    chroot: str = ""  # "" or "/folder/folder"
    user: str | None = None
    password: str | None = None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse a URL; error messages never contain its password."""
        scheme, separator, rest = url.partition("://")
        if not separator or scheme != "zookeeper":
            raise Invalid(f"{scheme[:32]!r} does not begin a ZooKeeper URL; {_FORM}")
        servers, _, folder = rest.partition("/")
        account, at, names = servers.rpartition("@")
        user, colon, password = account.partition(":")
        if at and not (user and colon and password):
            raise Invalid(
                "the ZooKeeper URL has '@' but not both a user and a password before it; "
                "write zookeeper://user:password@host:2181/folder"
            )
        return cls(
            hosts=tuple(_host(name) for name in names.split(",")),
            chroot=_chroot(folder),
            user=unquote(user) if at else None,
            password=unquote(password) if at else None,
        )

    def __str__(self) -> str:
        """The URL without its password."""
        account = f"{self.user}@" if self.user is not None else ""
        return f"zookeeper://{account}{','.join(self.hosts)}{self.chroot}"


def _host(text: str) -> str:
    match = _HOST.fullmatch(text)
    port = int(match["port"] or PORT) if match else 0
    if match is None or not 0 < port <= 65535:
        raise Invalid(f"{text[:100]!r} in the ZooKeeper URL is not host:port; {_FORM}")
    return f"{match['name']}:{port}"


def _chroot(folder: str) -> str:
    if not folder.rstrip("/"):
        return ""
    segments = folder.rstrip("/").split("/")
    for segment in segments:
        if segment in (".", "..") or not _SEGMENT.fullmatch(segment):
            raise Invalid(
                f"/{folder[:100]} in the ZooKeeper URL cannot be a node: {segment[:100]!r} is no "
                f"name in it; {_FORM}"
            )
    if segments[0] == "zookeeper":
        raise Invalid("/zookeeper belongs to ZooKeeper itself; name another folder in its URL")
    return "/" + "/".join(segments)

"""What people mean when they name an arc, or a time or a lot."""

import re
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from penstock.cli.times import read_moment
from penstock.client import Client
from penstock.client.documents import EntityId
from penstock.errors import Conflict, NotFound

ArcName = Annotated[str, Parameter(help="the arc: NAME or NAMESPACE/NAME")]
LotId = Annotated[str, Parameter(help="the lot")]
From = Annotated[
    str | None,
    Parameter(name="--from", help="the first time or lot; 7d is that long ago", show_default=False),
]
To = Annotated[
    str | None,
    Parameter(name="--to", help="the time to end before, or the last lot", show_default=False),
]
_INTERVAL_LOT = re.compile(r"\d{8}PT\w+")


def find_arc(client: Client, text: str, namespace: str | None = None) -> EntityId:
    """The arc that a text means."""
    if namespace is not None:
        return EntityId(namespace, text)
    return choose_arc([EntityId(arc.namespace, arc.name) for arc in client.arcs().arcs], text)


def choose_arc(known: Sequence[EntityId], text: str) -> EntityId:
    """The one of these arcs that a text means."""
    found = [arc for arc in known if text in (arc.name, f"{arc.namespace}/{arc.name}")]
    if len(found) == 1:
        return found[0]
    if found:
        choices = " or ".join(f"{arc.namespace}/{arc.name}" for arc in found)
        raise Conflict(f"{text!r} may be {choices}; say which")
    if not known:
        raise NotFound("there are no arcs yet; declare one with `penstock arcs apply FILE`")
    raise NotFound(f"there is no arc {text!r}; `penstock arcs list` lists them")


def read_bound(text: str | None) -> str | None:
    """A lot as it is, or a time; a span such as 7d is that long ago."""
    if text is None or _INTERVAL_LOT.fullmatch(text):
        return text
    return read_moment(text)

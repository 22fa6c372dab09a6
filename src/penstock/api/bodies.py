"""What all request bodies share."""

from msgspec import Struct


class Body(Struct, frozen=True, rename="camel"):
    """A request body; fields it does not know are ignored."""

"""What all request bodies share."""

from msgspec import Struct


class Body(Struct, frozen=True, rename="camel"):
    """A request body; fields it does not know are ignored."""


class OwnBody(Body, frozen=True, forbid_unknown_fields=True):
    """A request body that no other program's clients send; a field it does not know is refused.

    One that was mistyped would else be left out, and something else done than was asked for.
    """

"""Targets, and whether they are met."""

from msgspec import Struct


class Target(Struct, frozen=True):
    """A number to reach or not to exceed."""

    what: str
    wanted: str
    reached: str
    met: bool


def at_least(what: str, wanted: float, reached: float) -> Target:
    """Return a target for a ratio to reach."""
    return Target(what, f"≥ {wanted:.1f} ×", f"{reached:.2f} ×", reached >= wanted)


def below_ms(what: str, wanted: float, reached: float) -> Target:
    """Return a target for a time to stay below."""
    return Target(what, f"< {wanted:.0f} ms", f"{reached:.2f} ms", reached < wanted)


def above(what: str, wanted: float, reached: float) -> Target:
    """Return a target for a ratio to exceed."""
    return Target(what, f"> {wanted:.1f} ×", f"{reached:.2f} ×", reached > wanted)

"""What is to be reached, and whether it was."""

from msgspec import Struct


class Target(Struct, frozen=True):
    """One number to reach, or not to exceed."""

    what: str
    wanted: str
    reached: str
    met: bool


def at_least(what: str, wanted: float, reached: float) -> Target:
    """A ratio to reach."""
    return Target(what, f"≥ {wanted:.1f} ×", f"{reached:.2f} ×", reached >= wanted)


def below_ms(what: str, wanted: float, reached: float) -> Target:
    """A time to stay below."""
    return Target(what, f"< {wanted:.0f} ms", f"{reached:.2f} ms", reached < wanted)


def above(what: str, wanted: float, reached: float) -> Target:
    """A ratio to exceed."""
    return Target(what, f"> {wanted:.1f} ×", f"{reached:.2f} ×", reached > wanted)

"""The machine's time, which a test may put forward."""

from penstock.clock import SECOND, Micros, system_clock


class Moment:
    """A clock that goes on by itself, from where it was put."""

    def __init__(self) -> None:
        self.ahead: Micros = 0

    def __call__(self) -> Micros:
        return system_clock() + self.ahead

    def pass_seconds(self, seconds: int) -> None:
        """Put it forward."""
        self.ahead += seconds * SECOND

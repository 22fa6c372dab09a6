"""A clock that a test may advance."""

from penstock.clock import SECOND, Micros, system_clock


class AdjustableClock:
    """A clock that runs at normal speed from an adjustable offset."""

    def __init__(self) -> None:
        self.ahead: Micros = 0

    def __call__(self) -> Micros:
        return system_clock() + self.ahead

    def pass_seconds(self, seconds: int) -> None:
        """Advance the clock."""
        self.ahead += seconds * SECOND

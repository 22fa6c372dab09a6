"""What is wrong with a text, line by line, so that its writer can correct it all at once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock.errors import Invalid

FAULTS_MAX = 20
_QUOTED_CHARS_MAX = 64


class Faults:
    """The faults found so far."""

    def __init__(self) -> None:
        self._told: list[tuple[int, str]] = []

    @property
    def are_many(self) -> bool:
        """Whether there is no use in looking for more."""
        return len(self._told) > FAULTS_MAX

    def add(self, line: int, fault: str) -> None:
        """Something is wrong in a line."""
        self._told.append((line, fault))

    @contextmanager
    def of(self, line: int) -> Iterator[None]:
        """Take down what is refused in a line, and go on after the block."""
        try:
            yield
        except Invalid as fault:
            self.add(line, str(fault))

    def refuse(self) -> None:
        """Raise Invalid if there are any, with the first of them."""
        told = [f"line {line}: {fault}" for line, fault in sorted(self._told)]
        if self.are_many:
            told[FAULTS_MAX:] = ["and more: these are only the first"]
        if told:
            raise Invalid("\n".join(told))


def one_of(names: Iterable[str]) -> str:
    """The names that may be used, as a sentence has them."""
    *most, last = names
    return f"{', '.join(most)} or {last}"


def quoted(text: str) -> str:
    """The text as a message quotes it, cut if it is long."""
    return repr(text if len(text) <= _QUOTED_CHARS_MAX else text[:_QUOTED_CHARS_MAX] + "…")

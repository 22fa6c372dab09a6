"""The datasets of an arc by name: by the bare one, or by NAMESPACE/NAME where two share it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from penstock.errors import Invalid

T = TypeVar("T")


class ByName(Mapping[str, T], Generic[T]):
    """Something for each dataset. The whole name always leads to it, a bare one if it is alone."""

    def __init__(self, each: Iterable[tuple[str, str, T]]) -> None:
        """Each is a namespace, a name, and what there is for that dataset."""
        self._all = tuple(each)
        self._read: dict[str, list[int]] = {}
        for place, (namespace, name, _) in enumerate(self._all):
            for text in (name, f"{namespace}/{name}"):
                self._read.setdefault(text, []).append(place)

    def __getitem__(self, name: str) -> T:
        places = self._read[name]
        if len(places) > 1:
            whole = " or ".join("/".join(self._all[place][:2]) for place in places)
            raise Invalid(f"{name!r} may be {whole}; write it as NAMESPACE/NAME")
        return self._all[places[0]][2]

    def __iter__(self) -> Iterator[str]:
        """The shortest name of each."""
        for namespace, name, _ in self._all:
            yield name if len(self._read[name]) == 1 else f"{namespace}/{name}"

    def __len__(self) -> int:
        return len(self._all)


def variable_names(prefix: str, datasets: Sequence[tuple[str, str]]) -> list[str]:
    """What the environment of a command calls datasets, each a namespace and a name.

    Names alone where they differ; where two would be the same, the namespace goes first.
    """
    short = [f"{prefix}_{_word(name)}" for _, name in datasets]
    taken = Counter(short)
    return [
        name if taken[name] == 1 else f"{prefix}_{_word(each[0])}_{_word(each[1])}"
        for name, each in zip(short, datasets, strict=True)
    ]


def _word(text: str) -> str:
    return re.sub("[^A-Z0-9]+", "_", text.upper()).strip("_")

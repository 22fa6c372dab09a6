"""CPU profiles of a server: one cProfile for each thread."""

import cProfile
import pstats
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def profiled(folder: Path | None) -> Iterator[None]:
    """Profile this thread and those that it starts, each into a file; None disables it."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    thread_class: Any = threading.Thread
    run = thread_class.run

    def run_profiled(thread: threading.Thread) -> None:
        with _recording(folder / f"{thread.name}.prof"):
            run(thread)

    thread_class.run = run_profiled
    try:
        with _recording(folder / "main.prof"):
            yield
    finally:
        thread_class.run = run


@contextmanager
def _recording(path: Path) -> Iterator[None]:
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        profile.dump_stats(path)


def print_profiles(folder: Path, lines: int = 30) -> None:
    """Print the most expensive functions of the busiest threads."""
    found = [(path.stem, pstats.Stats(str(path))) for path in folder.glob("*.prof")]
    least = 0.05 * sum(_seconds(stats) for _, stats in found)
    for name, stats in sorted(found, key=lambda pair: -_seconds(pair[1])):
        if _seconds(stats) < least:
            break
        print(f"\nthread {name}: {_seconds(stats):.2f} s of processor time")
        stats.strip_dirs().sort_stats("tottime").print_stats(lines)


def _seconds(stats: pstats.Stats) -> float:
    return float(getattr(stats, "total_tt", 0.0))

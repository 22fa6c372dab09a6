"""Where a server's processor time goes: one cProfile for each of its threads."""

import cProfile
import pstats
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def profiled(folder: Path | None) -> Iterator[None]:
    """Profile this thread and those it starts, into one file each; None does nothing."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    run = threading.Thread.run

    def run_profiled(thread: threading.Thread) -> None:
        with _recording(folder / f"{thread.name}.prof"):
            run(thread)

    threading.Thread.run = run_profiled  # type: ignore[method-assign]
    try:
        with _recording(folder / "main.prof"):
            yield
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]


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
    """Show the most expensive functions of each thread, dearest thread first."""
    found = [pstats.Stats(str(path)) for path in sorted(folder.glob("*.prof"))]
    busiest = sorted(found, key=lambda stats: -_seconds(stats))
    for stats in busiest[:3]:
        print(f"\n{Path(stats.files[0]).name if stats.files else ''}: {_seconds(stats):.2f} s")
        stats.strip_dirs().sort_stats("tottime").print_stats(lines)


def _seconds(stats: pstats.Stats) -> float:
    return float(getattr(stats, "total_tt", 0.0))

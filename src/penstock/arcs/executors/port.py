"""The port that every executor implements; `open_executor` in `__init__.py` chooses one."""

from concurrent.futures import Executor, Future
from typing import Any, ClassVar


class TaskExecutor(Executor):
    """An executor of tasks; the defaults suit one that runs each task once, on this machine."""

    repeats_tasks: ClassVar[bool] = False  # may run one task twice, so each run needs its own place

    def take_back(self, future: "Future[Any]") -> bool:
        """Cancel a task that has surely not begun; return whether it was cancelled."""
        return future.cancel()

    def abandon(self, future: "Future[Any]") -> None:
        """Cancel a task, and end it if it runs and can be ended: its result is not needed."""
        future.cancel()

    def check(self) -> None:
        """Raise Away if the workers do not answer. Cheap, so a waiting caller may call it often."""

    def probe(self) -> None:
        """Reconnect if necessary, and ask the workers now; raise Away if they do not answer."""

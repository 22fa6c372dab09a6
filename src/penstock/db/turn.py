"""The writer's turn within one process."""

import threading


class Turn:
    """A lock that refuses, instead of waiting for ever, when its own thread asks again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            raise RuntimeError("this thread is writing already; use that transaction")
        self._lock.acquire()
        self._owner = me

    def __exit__(self, *exc: object) -> None:
        self._owner = 0
        self._lock.release()

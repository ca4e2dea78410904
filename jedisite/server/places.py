"""Long work in the threads of a process of the web server: a few at once, so that threads are left for other calls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """Who is being served by this process with work of one kind, and how many."""

    def __init__(self, at_once: int, of_one: int, full: type[Exception], own: type[Exception]) -> None:
        """So many places, of them to one account. `full` and `own` are raised where there is none, or none for the account."""
        self._at_once, self._of_one, self._full, self._own = at_once, of_one, full, own
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    def take(self, account: str) -> None:
        with self._lock:
            if self._held[account] >= self._of_one:
                raise self._own
            if self._held.total() >= self._at_once:
                raise self._full
            self._held[account] += 1

    def give_back(self, account: str) -> None:
        with self._lock:
            self._held[account] -= 1
            self._held += Counter()  # forgets who holds none

    @contextmanager
    def place(self, account: str) -> Iterator[None]:
        self.take(account)
        try:
            yield
        finally:
            self.give_back(account)

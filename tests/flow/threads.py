"""Functions run at the same moment by real threads, each on its own connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

LIMIT_S = 60.0


def together(*functions: Callable[[], Any]) -> list[Any]:
    """Call each function in a thread of its own, all let go by one barrier. Returns what they returned, in order.

    The first exception of any of them is raised here.
    """
    barrier = threading.Barrier(len(functions))
    results: list[Any] = [None] * len(functions)
    faults: list[BaseException] = []

    def run(place: int, function: Callable[[], Any]) -> None:
        try:
            connection.ensure_connection()
            barrier.wait(LIMIT_S)
            results[place] = function()
        except BaseException as exc:  # noqa: BLE001 - raised again in the test's own thread
            faults.append(exc)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert not any(thread.is_alive() for thread in threads), f"threads still run after {LIMIT_S} s"
    if faults:
        raise faults[0]
    return results

"""The pilot never overlooks a living process of a payload, whoever of its parents ends at the moment."""

from __future__ import annotations

import subprocess
import sys

# It is run apart, since it makes itself the parent of orphans. In each round a parent ends at once and leaves a child, which
# has said that it lives; each look while the parent ends must find the child.
ROUNDS = 600
LOOKS = f"""
import os, signal
from tasks_app.worker_node.pilot.processes import Family, adopt_orphans

adopt_orphans()
family, overlooked = Family(), 0
for _ in range({ROUNDS}):
    ours, theirs = os.pipe()
    go, start = os.pipe()
    parent = os.fork()
    if parent == 0:
        child = os.fork()
        if child == 0:
            os.write(theirs, str(os.getpid()).encode())
            signal.pause()
        os.read(go, 1)
        os._exit(0)
    child = int(os.read(ours, 20))
    os.write(start, b"x")
    while True:
        seen = [process.pid for process in family.members()]
        overlooked += child not in seen
        if os.waitid(os.P_PID, parent, os.WEXITED | os.WNOHANG):
            break
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED)
    for end in (ours, theirs, go, start):
        os.close(end)
print(overlooked)
"""


def test_a_process_whose_parent_ends_while_the_pilot_looks_is_found() -> None:
    ran = subprocess.run([sys.executable, "-c", LOOKS], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "0\n"

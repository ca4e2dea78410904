"""A program for tests: runs shell commands under a supervisor, says their pids in one line of JSON.

Arguments: the grace in seconds, then the commands.
"""

from __future__ import annotations

import json
import sys

from jedisite.processes.supervisor import Process, Supervisor


def main() -> None:
    grace, *commands = sys.argv[1:]
    with Supervisor(lambda event: None, grace_s=float(grace)) as supervisor:
        for number, command in enumerate(commands):
            supervisor.start(Process(f"child {number}", ("/bin/sh", "-c", command)))
        sys.stdout.write(json.dumps(list(supervisor.pids().values())) + "\n")
        sys.stdout.flush()
        supervisor.run()


if __name__ == "__main__":
    main()

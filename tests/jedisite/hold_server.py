"""A program for tests: starts or joins the server of a home, says so in one line of JSON, holds it until stdin ends.

It gets one argument, JSON with `home`, `binaries`, `settings`, and perhaps `uid` and `gid` to become first.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401  after becoming another user, Python's own folder may be out of reach
import json
import os
import sys
from pathlib import Path

import psycopg

from jedisite.processes.postgres import EmbeddedServer


def main() -> None:
    wanted = json.loads(sys.argv[1])
    if "uid" in wanted:
        psycopg.conninfo.make_conninfo(host="127.0.0.1")
        os.setgroups([])
        os.setgid(wanted["gid"])
        os.setuid(wanted["uid"])
    server = EmbeddedServer(Path(wanted["home"]), binaries=Path(wanted["binaries"]), settings=wanted["settings"])
    server.start()
    sys.stdout.write(json.dumps({"url": server.url, "is_owner": server.is_owner}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()

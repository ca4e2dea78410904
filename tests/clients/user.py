"""A user of PanDA's command line programs: an environment, a folder with code, and what the programs say."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 120


@dataclass(frozen=True)
class User:
    """`programs` is the environment in which panda-client is installed, `folder` where the user works."""

    programs: Path
    url: str
    token: str
    folder: Path

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if k in ("LANG", "LC_ALL", "TMPDIR", "TZ")}
        server = f"{self.url}/server/panda"
        return inherited | {
            "PATH": f"{self.programs / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "VIRTUAL_ENV": str(self.programs),
            "PANDA_SYS": str(self.programs),
            "PANDA_URL": server,
            "PANDA_URL_SSL": server,
            "PANDACACHE_URL": server,
            "PANDA_BEHIND_REAL_LB": "1",
            "PANDA_AUTH": "oidc",
            "PANDA_AUTH_VO": "atlas",
            "PANDA_AUTH_ID_TOKEN": self.token,
            "PANDA_CONFIG_ROOT": str(self.folder / "panda"),
            "NO_PROXY": "127.0.0.1",
            "COLUMNS": "200",
            **more,
        }

    def run(self, *command: str, cwd: Path | None = None, code: int | None = 0, **more: str) -> str:
        """What a program says. It gets a session of its own, since pbook ends its whole process group when it is stopped."""
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            start_new_session=True,
        )
        assert code is None or done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def prun(self, *options: str, cwd: Path, code: int = 0) -> int:
        """Submit; returns the number of the task (0 when `code` says that it is refused)."""
        report = self.folder / "submitted.json"
        report.unlink(missing_ok=True)
        self.run("prun", *options, "--dumpJson", str(report), cwd=cwd, code=code)
        return int(json.loads(report.read_text())[0]["jediTaskID"]) if code == 0 else 0

    def pbook(self, *words: str, code: int | None = 0) -> str:
        return self.run("pbook", *words, code=code)

    def python(self, text: str) -> Any:
        """What a piece of Python finds with panda-client's own library; it sets `found`."""
        lines = f"import json\nfrom pandaclient import Client\n{text}\nprint()\nprint(json.dumps(found, default=str))"
        return json.loads(self.run("python", "-c", lines).splitlines()[-1])

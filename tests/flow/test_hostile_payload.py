"""A user's job on a whole installation that tries to take it over: it gets nothing, and its owner stays an ordinary user."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.clients.test_pilot import files, jobs, post, task, token_of
from tests.installation import Site, wait_for, walled_site

LIMIT_S = 120
THIEF = r"""
import glob, json, os, socket, subprocess, sys
home, ports = sys.argv[1], [int(port) for port in sys.argv[2].split(",")]
got = {}
for name in ("", "/secret_key", "/run/DATABASE_URL", "/postgres/state.json"):
    got[name] = os.path.exists(home + name)
for port in ports:
    with socket.socket() as probe:
        got[port] = probe.connect_ex(("127.0.0.1", port)) == 0
paths = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
texts = [open(path, "rb").read() for path in paths if os.access(path, os.R_OK)]
got["secrets of processes"] = any(b"postgresql:" + b"//" in text or b"jedi" + b"_" in text for text in texts)
got["processes"] = len(glob.glob("/proc/[0-9]*")) > 10
got["files of root"] = bool(glob.glob(os.path.join("/", "root", "*", "*token*"))) or os.access("/etc/shadow", os.R_OK)
print(json.dumps(got))
"""


def states(site: Site, name: str) -> list[str]:
    """States of the task's jobs."""
    return [row[0] for row in jobs(site).get(name, [])]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with walled_site(tmp_path_factory) as site:
        yield site


def test_a_payload_on_a_whole_site_gets_nothing(site: Site) -> None:
    site.manage("shell", "-c", "from django.contrib.auth.models import User; User.objects.create_user('ada')")
    token = token_of(site, "make", "ada")
    port = int(site.url.rpartition(":")[2])
    server = int(re.findall(r":(\d+)/", site.database)[0])
    command = f"cat > thief.py <<'END'\n{THIEF}\nEND\npython3 thief.py {site.home} {port},{server} > out.txt"
    post(site, token, "/api/v2/tasks/", task("thief", command))
    wait_for(lambda: states(site, "thief") in (["finished"], ["failed"]), "the end of the job", LIMIT_S)
    assert states(site, "thief") == ["finished"], (site.home / "log" / "local_workers.log").read_text()[-2000:]
    (path,) = wait_for(lambda: files(site, "user.ada.thief.1"), "its output in the catalogue", LIMIT_S)
    got = json.loads(path.read_text())
    assert len(got) == 9 and {name: what for name, what in got.items() if what} == {}


def test_no_secret_is_in_the_environment_or_the_words_of_a_process(site: Site) -> None:
    wait_for(lambda: any("tasks_app.pilot" in one.cmdline() for one in site.victims()), "a pilot")
    kept = [*(site.home / "run").iterdir(), *(site.home / "work").glob("w-*/token"), site.home / "secret_key"]
    # Where the site is, and its process, is no secret.
    secrets = [path.read_text() for path in kept if path.name != "site.lock"]
    secrets += [secret.split(":")[2].split("@")[0] for secret in secrets if secret.startswith("postgresql://")]
    assert len(secrets) == 4
    looked = 0
    for process in site.victims():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):  # it has just ended
            text = Path(f"/proc/{process.pid}/environ").read_text() + " ".join(process.cmdline())
            looked += 1
            assert not [secret for secret in secrets if secret in text], process.cmdline()
    assert looked >= 6
    assert all(path.stat().st_mode & 0o77 == 0 for path in kept)

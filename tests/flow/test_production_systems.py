"""A production system, a process with rights on two tables only: its tasks and commands are served once, and answered."""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import OperationalError, connection

from tasks_app.agents import messages, production_systems
from tasks_app.agents.watchdogs import old_messages
from tasks_app.lifecycle import task_moves
from tasks_app.messaging import production_systems as rows
from tasks_app.messaging import states_back
from tasks_app.models import Command, FeedReader, OutMessage, ProductionCommand, ProductionTask, Task
from tests.database import SUPERUSER
from tests.flow.balance import assert_books_balance
from tests.flow.driving import add_dataset, agents_turn, parameters, reads, settle, status, submit
from tests.flow.pilot import Pilot, drive, failing_on
from tests.locks import skips

pytestmark = pytest.mark.usefixtures("books")
NOW = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
MADE = ("taskName", "userName", "vo", "prodSourceLabel", "taskPriority")

PROGRAM = """
import json, sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    for line in sys.stdin:
        statement, values = json.loads(line)
        try:
            cursor = connection.execute(statement, values)
            found = cursor.fetchall() if cursor.description else cursor.rowcount
        except psycopg.Error as exc:
            found = type(exc).__name__
        print(json.dumps(found, default=str), flush=True)
"""
GRANTS = """
CREATE ROLE {0} LOGIN PASSWORD '{1}';
GRANT SELECT, INSERT ON t_task TO {0};
GRANT SELECT, INSERT, DELETE ON prodsys_comm TO {0};
GRANT USAGE ON SEQUENCE jedi_tasks_id_seq TO {0};
ALTER ROLE {0} SET idle_in_transaction_session_timeout = '15s';
ALTER ROLE {0} SET statement_timeout = '15s';
GRANT {0} TO {2}
"""
"""What docs/production_systems.md tells operators to do."""
NEW_TASK = """INSERT INTO t_task (taskid, status, jedi_task_parameters) VALUES (nextval('jedi_tasks_id_seq'), 'waiting', %s)
              RETURNING taskid"""
NEW_COMMAND = """INSERT INTO prodsys_comm (comm_task, comm_owner, comm_cmd, comm_comment, comm_parameters)
                 VALUES (%s, 'DEFT', %s, %s, %s)"""


class System:
    """A production system: a process with its own connection."""

    def __init__(self) -> None:
        self.name = f"deft_{secrets.token_hex(4)}"
        password = secrets.token_hex(8)
        with superuser() as server:
            server.execute(GRANTS.format(self.name, password, connection.get_connection_params()["user"]).encode())
        given = connection.get_connection_params()
        address = f"postgresql://{self.name}:{password}@{given['host']}:{given['port']}/{given['dbname']}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def end(self) -> None:
        self.process.communicate(timeout=60)
        with superuser() as server:
            server.execute(f"DROP OWNED BY {self.name}; DROP ROLE {self.name}".encode())

    def say(self, *statements: tuple[str, list[Any]]) -> list[Any]:
        given, answers = self.process.stdin, self.process.stdout
        assert given is not None and answers is not None
        found = []
        for statement in statements:
            given.write(json.dumps(statement) + "\n")
            given.flush()
            found.append(json.loads(answers.readline()))
        return found

    def submit(self, *tasks: Any) -> list[int]:
        texts = [task if isinstance(task, str) else json.dumps(task) for task in tasks]
        return [found[0][0] for found in self.say(*[(NEW_TASK, [text]) for text in texts])]

    def command(self, task_id: int, name: str, comment: str | None = None, params: object = None) -> None:
        given = None if params is None else params if isinstance(params, str) else json.dumps(params)
        assert self.say((NEW_COMMAND, [task_id, name, comment, given])) == [1]

    def row(self, task_id: int) -> list[Any]:
        """Status and error."""
        ((found,),) = self.say(("SELECT status, error FROM t_task WHERE taskid = %s", [task_id]))
        return list(found)

    def answers(self, task_id: int) -> list[list[str]]:
        statement = "SELECT comm_cmd, comm_status, comm_answer FROM prodsys_comm WHERE comm_task = %s ORDER BY id"
        (found,) = self.say((statement, [task_id]))
        return list(found)


def superuser() -> psycopg.Connection[Any]:
    """A connection of who may make roles, to the database of this process."""
    server = os.environ.get(SUPERUSER) or os.environ["DATABASE_URL"]
    return psycopg.connect(server, dbname=connection.get_connection_params()["dbname"], autocommit=True)


@pytest.fixture
def make_system(tables: None) -> Iterator[Callable[..., System]]:
    made = []

    def make(*, account: bool = True, role: str = "production") -> System:
        made.append(System())
        if account:
            user = User.objects.create_user(made[-1].name)
            user.groups.set([Group.objects.get_or_create(name=role)[0]] if role else [])
        return made[-1]

    yield make
    for system in made:
        system.end()


@pytest.fixture
def deft(make_system: Callable[..., System]) -> System:
    User.objects.create_user("ada")
    return make_system()


def wanted(name: str, files: int = 2, **more: Any) -> dict[str, Any]:
    add_dataset(f"{name}.in", files)
    return parameters(name, reads(f"{name}.in"), nFilesPerJob=1, maxAttempt=1, **more)


def serve(now: datetime = NOW) -> str:
    messages.run()
    return production_systems.run(now=now).note


def test_a_task_is_imported_once_and_its_states_come_back(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    assert deft.row(made) == ["waiting", ""]
    serve()
    task = Task.objects.get()
    assert (task.id, task.name, task.user, task.status, deft.row(made)[0]) == (
        made,
        "lab.t",
        "ada",
        "registered",
        "registered",
    )
    agents_turn()
    serve()
    row = ProductionTask.objects.get()
    assert (row.status, row.current_priority, row.total_done_jobs) == ("running", 500, None)
    assert row.start_time is not None and row.imported == NOW
    drive(Pilot(failing_on("lab.t.in.00001")))
    serve()
    row.refresh_from_db()
    assert (row.status, row.total_done_jobs) == ("finished", 1)
    settle()
    serve()
    assert (Task.objects.count(), deft.row(made)[0]) == (1, "finished")


def test_steps_that_are_this_site_s_own_are_not_told(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    serve()
    agents_turn()
    task_moves.move_task(made, "paused", by="test", reason="x", remember=True)
    serve()
    assert (status(made), deft.row(made)[0]) == ("paused", "running")


REFUSED: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "The column jedi_task_parameters is no valid JSON: Expecting property name"),
    "wrong type": ({"nEventsPerJob": "many"}, "nEventsPerJob: "),
    "too deep": ("[" * 100_000, "deeper than"),
    "not an object": ("[1]", ""),
    "twice the same": ('{"taskName": "a", "taskName": "b"}', "occurs twice"),
    "unknown parameter": ({"taskNmae": "a"}, "taskName"),
    "not offered": ({"hpoWorkflow": True}, "does not offer"),
    "segments": ({"segmentedWork": True, "segmentSpecs": [{"name": "a"}]}, "Submit a task for each segment"),
    "unknown owner": ({"userName": "nobody"}, "nobody"),
    "too long": ('{"taskName": "' + "x" * 10 * 1024 * 1024 + '"}', "longer than"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_row_says_why(deft: System, case: str) -> None:
    given, sentence = REFUSED[case]
    (made,) = deft.submit(wanted("lab.t") | given if isinstance(given, dict) else given)
    assert serve() == f"1 row refused: task {made} of {deft.name}"
    state, error = deft.row(made)
    assert (state, sentence in error, Task.objects.count()) == ("broken", True, 0), error
    assert serve() == ""


def test_columns_say_what_the_parameters_do_not(deft: System) -> None:
    params = wanted("lab.t")
    asked = {name: params.pop(name) for name in MADE}
    statement = """INSERT INTO t_task (taskname, username, vo, prodsourcelabel, priority, jedi_task_parameters)
                   VALUES (%s, %s, %s, %s, %s, %s) RETURNING taskid"""
    said = deft.say(
        (statement, [*asked.values(), json.dumps(params)]),
        (statement, [*asked.values(), json.dumps(params | {"taskName": "lab.u"})]),
    )
    serve()
    task = Task.objects.get()
    assert (task.id, task.name, task.user, task.vo, task.current_priority) == (
        said[0][0][0],
        "lab.t",
        "ada",
        "lab",
        500,
    )
    state, error = deft.row(said[1][0][0])
    assert (state, "The column taskname says 'lab.t', and taskName" in error) == ("broken", True)


def test_a_flood_of_one_system_delays_no_other(deft: System, make_system: Callable[..., System]) -> None:
    prod = make_system()
    flood = deft.submit(*["{}"] * 30)
    for made in flood[:20]:
        deft.command(made, "kill")
    (made,) = prod.submit(wanted("lab.t"))
    prod.command(made, "pause")
    production_systems.run(limit=4)
    assert (prod.row(made)[0], prod.answers(made)) == ("registered", [["pauseing", "given", ""]])
    assert [deft.row(number)[0] for number in flood].count("waiting") == 27


def test_numbers_never_meet(deft: System) -> None:
    """One that a task has is refused by the site; one that the sequence has not given, or gives later, by the table."""
    ours = submit(wanted("lab.ours"))
    statement = "INSERT INTO t_task (taskid, jedi_task_parameters) VALUES (%s, %s)"
    text = json.dumps(wanted("lab.t"))
    tried = deft.say(*((statement, [number, text]) for number in (ours, ours + 1, ours + 100_000, 7, -1)))
    assert tried == [1, *["CheckViolation"] * 4]
    assert [submit(wanted(f"lab.{n}")) for n in range(2)] == [ours + 1, ours + 2]
    serve()
    assert deft.row(ours)[0] == "broken" and "already" in deft.row(ours)[1]
    agents_turn()
    serve()
    assert deft.row(ours)[0] == "broken", "what becomes of the other task is not told"


def test_rights_are_those_of_the_account_and_rows_those_of_the_role(
    deft: System, make_system: Callable[..., System]
) -> None:
    plain, stranger = make_system(role=""), make_system(account=False)
    (official,) = deft.submit(wanted("lab.t"))
    (foreign,), (waits,) = plain.submit(wanted("lab.u")), stranger.submit(wanted("lab.v"))
    assert serve() == (
        f"1 row refused: task {foreign} of {plain.name}; 1 row waits for an account of its role: {stranger.name}"
    )
    assert plain.row(foreign)[0] == "broken" and "production right" in plain.row(foreign)[1]
    assert stranger.row(waits)[0] == "waiting" and f"account named {stranger.name}" in stranger.row(waits)[1]
    plain.command(official, "kill")
    serve()
    ((word, state, answer),) = plain.answers(official)
    assert (word, state) == ("kill failed", "refused") and "belongs to ada" in answer
    assert plain.say(
        ("SELECT taskid FROM t_task", []),
        ("INSERT INTO t_task (db_role, jedi_task_parameters) VALUES (%s, '{}')", [deft.name]),
        ("INSERT INTO t_task (status, jedi_task_parameters) VALUES ('done', '{}')", []),
        ("UPDATE t_task SET status = 'done'", []),
        ("DELETE FROM t_task", []),
        ("SELECT 1 FROM jedi_tasks", []),
    ) == [[[foreign]], *["InsufficientPrivilege"] * 5]
    assert deft.say(("DELETE FROM prodsys_comm", [])) == [0]
    account = User.objects.create_user(stranger.name)
    account.groups.set([Group.objects.get(name="production")])
    serve()
    assert stranger.row(waits) == ["registered", ""]


def test_commands_are_given_in_their_order_and_answered_in_jedi_s_words(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    deft.command(made, "pause")
    serve()
    assert deft.answers(made) == [["pauseing", "given", ""]], "after the row of the task, in the same pass"
    agents_turn()
    serve()
    assert status(made) == "paused" and deft.answers(made)[0][:2] == ["pauseing", "done"]
    deft.command(made, "resume")
    deft.command(made, "reassign", "site:SITE_A:n:soft reassign")
    deft.command(made, "retry", "sole")
    deft.command(made, "explode")
    deft.command(made, "incexec", "sole,discard")
    deft.command(made, "kill", "no longer wanted")
    deft.command(7, "kill")
    serve()
    given = list(Command.objects.filter(task_id=made).order_by("id").values_list("name", "owner", "parameters"))
    assert given == [
        ("pause", deft.name, None),
        ("resume", deft.name, None),
        ("reassign", deft.name, {"site": "SITE_A", "mode": "soft"}),
        ("kill", deft.name, None),
    ]
    words = [(word, state) for word, state, _ in deft.answers(made)]
    assert words[3:6] == [(f"{word} failed", "refused") for word in ("retry", "explode", "incexec")]
    assert "Discard goes with retry" in deft.answers(made)[5][2]
    assert "There is no task 7" in deft.answers(7)[0][2]
    settle()
    serve()
    assert (status(made), deft.row(made)[0]) == ("aborted", "aborted")
    assert deft.answers(made)[-1][:2] == ["killing", "done"]


def test_a_command_that_the_task_refuses_later_says_so(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    serve()
    agents_turn()
    deft.command(made, "avalanche")
    deft.command(made, "incexec", "keep", {"nFiles": 1})
    serve()
    assert [word for word, *_ in deft.answers(made)] == ["avalanche failed", "incexec failed"]
    deft.command(made, "finish", "soft finish")
    serve()
    assert Command.objects.get().parameters == {"soft": True}
    task_moves.move_task(made, "aborting", by="test", reason="x", remember=True)
    settle()
    serve()
    assert deft.answers(made)[-1][:2] == ["finish failed", "refused"]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ("{", "The column comm_parameters is no valid JSON: Expecting property name"),
        ("[]", "JSON object"),
        ('{"x": 1}', "x"),
        ("9" * 5000, ""),
    ],
)
def test_hostile_parameters_of_a_command_are_refused(deft: System, params: str, sentence: str) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    deft.command(made, "finish", None, params)
    serve()
    ((word, state, answer),) = deft.answers(made)
    assert (word, state, sentence in answer) == ("finish failed", "refused", True), answer
    assert status(made) == "registered"


def _killed_at(number: int, work: Callable[[], Any]) -> None:
    """In a process of its own: work that is killed when the database has done so many statements, if there are as many."""
    left = [number]

    def counted(execute: Any, *arguments: Any) -> Any:
        done = execute(*arguments)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    with connection.execute_wrapper(counted):
        work()
    os._exit(0)


def killed_everywhere(work: Callable[[], Any], *, every: int) -> int:
    """Do the work again and again, each time killed some statements later, until it ends. Returns how often it was killed."""
    kills = 0
    while True:
        connection.close()
        other = multiprocessing.get_context("fork").Process(target=_killed_at, args=(1 + kills * every, work))
        other.start()
        other.join(60)
        if other.exitcode == 0:
            return kills
        assert other.exitcode == -signal.SIGKILL
        kills += 1


def test_whoever_is_killed_whenever_nothing_is_lost_and_nothing_is_done_twice(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    assert killed_everywhere(lambda: rows.import_next(deft.name, NOW), every=4) > 5
    assert (Task.objects.count(), deft.row(made)) == (1, ["registered", ""])
    deft.command(made, "pause")
    assert killed_everywhere(lambda: rows.give_next_command(deft.name), every=2) > 3
    assert (Command.objects.count(), deft.answers(made)) == (1, [["pauseing", "given", ""]])
    agents_turn()
    messages.run()
    assert killed_everywhere(lambda: (states_back.write_states(1000), states_back.write_answers()), every=1) > 2
    assert (status(made), deft.answers(made)[0][1]) == ("paused", "done")
    last = OutMessage.objects.order_by("-position").first()
    assert last is not None and FeedReader.objects.get().position == last.position
    assert killed_everywhere(production_systems.run, every=3) > 1
    assert (Task.objects.count(), Command.objects.count(), rows.import_next(deft.name, NOW)) == (1, 1, None)


def test_the_database_s_own_trouble_refuses_nobody(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))

    def deadlock(execute: Any, statement: str, *more: Any) -> Any:
        if "INSERT INTO" in statement and "jedi_taskparams" in statement:
            statement = "DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40P01'; END $$"
            more = (None, *more[1:])
        return execute(statement, *more)

    with pytest.raises(OperationalError), connection.execute_wrapper(deadlock):
        rows.import_next(deft.name, NOW)
    assert (deft.row(made), Task.objects.count()) == (["waiting", ""], 0)
    serve()
    assert deft.row(made)[0] == "registered"


def test_rows_that_another_holds_are_passed_over(deft: System) -> None:
    first, second = deft.submit(wanted("lab.t"), wanted("lab.u"))
    skips(("t_task", "taskid", first), lambda: rows.import_next(deft.name, NOW))
    assert [deft.row(made)[0] for made in (first, second)] == ["waiting", "registered"]
    serve()
    for made in (first, second):
        deft.command(made, "pause")
    held = ProductionCommand.objects.get(task_id=first)
    skips(("prodsys_comm", "id", held.id), lambda: rows.give_next_command(deft.name))
    assert [deft.answers(made)[0][0] for made in (first, second)] == ["pause", "pauseing"]
    messages.run()
    before = FeedReader.objects.get().position
    skips(("messages_out_readers", "name", rows.ME), lambda: states_back.write_states(1000))
    assert FeedReader.objects.get().position == before
    serve()
    assert FeedReader.objects.get().position > before


def test_rows_that_a_production_system_holds_delay_no_others(deft: System) -> None:
    """It may delete its own rows, and take its time to commit."""
    first, second = deft.submit(wanted("lab.t"), wanted("lab.u"))
    serve()
    for made in (first, second):
        deft.command(made, "kill")
    serve()
    settle()
    held = ProductionCommand.objects.get(task_id=first)
    assert skips(("prodsys_comm", "id", held.id), states_back.write_answers) == 1
    assert deft.answers(second)[0][1] == "done" != deft.answers(first)[0][1]
    User.objects.filter(username=deft.name).update(is_active=False)
    third, fourth = deft.submit(wanted("lab.v"), wanted("lab.w"))
    assert skips(("t_task", "taskid", third), rows.rows_without_account) == 2
    assert [bool(deft.row(made)[1]) for made in (third, fourth)] == [False, True]
    for made in (third, fourth):
        deft.command(made, "kill")
    held = ProductionCommand.objects.get(task_id=third)
    skips(("prodsys_comm", "id", held.id), rows.rows_without_account)
    assert [bool(deft.answers(made)[0][2]) for made in (third, fourth)] == [False, True]


FOR_EVER = [("SET idle_in_transaction_session_timeout = 0", []), ("SET statement_timeout = 0", [])]
MOVERS = "hashtextextended('mover claims', 0)"


def test_a_table_that_a_production_system_has_locked_is_served_soon(make_system: Callable[..., System]) -> None:
    User.objects.create_user("ada")
    deft, other = make_system(), make_system()
    (made,) = other.submit(wanted("lab.t"))
    deft.say(*FOR_EVER, ("BEGIN", []), ("LOCK TABLE prodsys_comm IN ACCESS EXCLUSIVE MODE", []))
    found = production_systems.run()
    assert "another session has what is to be written" in found.note and found.items == 0
    assert f"ended a session of {deft.name}" in production_systems.run(longest=timedelta(0)).note
    assert other.row(made)[0] == "registered"
    assert deft.say(("SELECT 1", [])) != [[[1]]], "its connection is gone"


def test_an_advisory_lock_that_a_production_system_takes_is_taken_from_it(deft: System) -> None:
    deft.say(*FOR_EVER, (f"SELECT pg_advisory_lock({MOVERS})", []))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({MOVERS})")
        assert cursor.fetchone() == (False,), "the mover would wait"
        assert f"ended a session of {deft.name}" in production_systems.run().note
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({MOVERS})")
        assert cursor.fetchone() == (True,)


def test_a_production_system_whose_role_the_site_was_not_granted_is_named(deft: System) -> None:
    with superuser() as server:
        server.execute(f"REVOKE {deft.name} FROM {connection.get_connection_params()['user']}".encode())
    deft.say(("SELECT pg_advisory_lock(1)", []))
    assert f"the site cannot end sessions of {deft.name}" in production_systems.run().note
    assert deft.say(("SELECT 1", [])) == [[[1]]]


def test_a_row_that_takes_too_long_is_refused_once_and_the_others_go_on(
    deft: System, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    slow, other = deft.submit(wanted("lab.slow", uniqueTaskName=True), wanted("lab.other"))
    long = settings.JEDI_TURN_S
    with superuser() as holder, holder.transaction():
        holder.execute("SELECT pg_advisory_xact_lock(hashtextextended('task name lab.slow', 0))")
        settings.JEDI_TURN_S = 0.5
        assert rows.import_next(deft.name, NOW) == rows.Served(f"task {slow} of {deft.name}")
        assert deft.row(slow) == ["waiting", rows.SLOW], "it comes last, and may take longer then"
        assert rows.import_next(deft.name, NOW, slow=True)
        caplog.clear()  # that was an error, and is the only one
        settings.JEDI_TURN_S = long
        serve()
    (status_of_slow, why), again = deft.row(slow), serve()
    assert (status_of_slow, deft.row(other)[0]) == ("broken", "registered") and again == ""
    assert "it took longer than the 0.5 s that one task may take" in why
    assert list(Task.objects.values_list("id", flat=True)) == [other]


def test_slow_rows_come_last_and_a_pass_has_an_end(
    deft: System, make_system: Callable[..., System], monkeypatch: pytest.MonkeyPatch
) -> None:
    prod = make_system()
    slow = deft.submit(*(wanted(f"lab.slow{number}", uniqueTaskName=True) for number in range(2)))
    (other,), (last,) = prod.submit(wanted("lab.other")), deft.submit(wanted("lab.last"))
    deft.command(last, "pause")
    monkeypatch.setattr(rows, "QUICK_S", 2.0)
    with superuser() as holder, holder.transaction():
        for number in range(2):
            holder.execute(f"SELECT pg_advisory_xact_lock(hashtextextended('task name lab.slow{number}', 0))")
        done = [rows.import_next(deft.name, NOW) for _ in range(3)]
        assert [found and found.error for found in done] == [""] * 3
        assert [deft.row(number) for number in slow] == [["waiting", rows.SLOW]] * 2
    assert (deft.row(last)[0], prod.row(other)[0]) == ("registered", "waiting")
    # With no time left a row of each kind is served, the slow ones by one.
    assert production_systems.run(now=NOW, for_s=0).more
    assert [deft.row(number)[0] for number in slow] == ["registered", "waiting"]
    assert (prod.row(other)[0], deft.answers(last)) == ("registered", [["pauseing", "given", ""]])
    assert production_systems.run(now=NOW, for_s=0).more
    assert deft.row(slow[1])[0] == "registered" and not production_systems.run(now=NOW).more


def test_messages_stay_until_they_are_written_back(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    serve()
    serve()
    read = FeedReader.objects.get().position
    drive(Pilot())
    messages.run(now=NOW)
    old_messages.run(now=NOW + timedelta(days=40))
    kept = OutMessage.objects.order_by("position").first()
    assert kept is not None and kept.position == read + 1
    serve()
    assert deft.row(made)[0] == "done"


def test_the_audit_finds_what_is_not_told(deft: System) -> None:
    (made,) = deft.submit(wanted("lab.t"))
    serve()
    serve()
    ProductionTask.objects.update(status="ready")
    with pytest.raises(AssertionError, match="production_systems_are_told"):
        assert_books_balance()
    ProductionTask.objects.update(status="registered")
    assert deft.row(made)[0] == "registered"

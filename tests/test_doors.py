"""States of stored jobs, tasks and files are written in `lifecycle` only: a new statement elsewhere makes these tests fail."""

from __future__ import annotations

from tests.state_writers import writers, writers_in

APART = frozenset({"migrations", "labs", "lifecycle"})
"""Migrations change what was; labs make up what has never been stored by the site itself."""

_OTHER = "no state of a job, a task or a file"

STILL_ELSEWHERE = {
    "tasks_app/commands/obeying.py:obey_next": f"{_OTHER}: of a command",
    "tasks_app/commands/rerun.py:_open_outputs": f"{_OTHER}: of datasets",
    "tasks_app/outcomes/dataset_endings.py:_end_outputs": f"{_OTHER}: of datasets",
    "tasks_app/outcomes/dataset_endings.py:call_done": f"{_OTHER}: of datasets",
    "tasks_app/submission/rerefining.py:_datasets": f"{_OTHER}: of datasets",
    "tasks_app/worker_node/pilot/site_client.py:RefusedError.__init__": f"{_OTHER}: of an answer",
}
"""States of files that are not written in `lifecycle` yet, and why; this list can only become shorter. States of jobs and
of tasks are never in it."""

SOURCE = '''
"""A docstring may say UPDATE jobs SET jobstatus = 'sent'."""
_A = "UPDATE jobs j SET endtime = now(), jobstatus = e.status FROM ended e"
_B = f"WITH m AS (UPDATE {TABLE} SET status = CASE WHEN a = b THEN 'x' END WHERE id = 1) SELECT 1"
_C = "INSERT INTO jedi_tasks (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET status = excluded.status"
_D = "UPDATE jobs SET n = (SELECT count(*) FROM a WHERE x), jobstatus = 'sent'"
def several(rows):
    run("UPDATE job_files f SET status = 'a' WHERE id = 1", "UPDATE jedi_dataset_contents c SET fsize = 1, status='b'")
    rows.update(status="lost")
    row.status = "lost"
    rows.bulk_update(rows, ["status"])
def none(rows):
    run("UPDATE jobs SET endtime = (SELECT 1 WHERE jobstatus = 'a') WHERE jobstatus = 'sent'", "UPDATE queues SET status = 'a'")
    run("SELECT 1 FROM jobs WHERE jobstatus = 'sent' FOR UPDATE", "UPDATE jobs SET jobsubstatus = 'a'")
    rows.update(status=DatasetStatus.DONE)
    rows.update(at=now, old_status=1)
'''


def test_what_writes_a_state_is_found() -> None:
    found = writers_in(SOURCE)
    assert sorted(set(found)) == ["_A", "_B", "_C", "_D", "several"]
    assert found.count("several") == 5


def test_states_are_written_in_lifecycle_only() -> None:
    found = writers(APART)
    assert found - set(STILL_ELSEWHERE) == set(), "move it to lifecycle"
    assert set(STILL_ELSEWHERE) - found == set(), "it has moved: take it from the list"


def test_the_doors_are_where_states_are_written() -> None:
    rooms = {place.split(":")[0] for place in writers(APART - {"lifecycle"}) - writers(APART)}
    assert {
        f"tasks_app/lifecycle/{name}.py" for name in ("job_moves", "job_handout", "job_reports", "job_ends")
    } <= rooms

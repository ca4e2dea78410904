"""States of stored jobs, tasks, datasets and files are written in `lifecycle` only: a statement elsewhere fails these tests."""

from __future__ import annotations

from tests.state_writers import writers, writers_in

APART = frozenset({"migrations", "labs", "lifecycle"})
"""Migrations change what was; labs make up what has never been stored by the site itself."""

DOORS = (
    "dataset_moves",
    "file_availability",
    "file_ends",
    "file_handovers",
    "file_moves",
    "file_recovery",
    "file_removal",
    "file_uses",
    "group_files",
    "job_ends",
    "job_handout",
    "job_hooks",
    "job_moves",
    "job_reports",
)
OF_ZIPS = "events_app/lifecycle/zip_rows.py"
"""Records of files that no task has in its books."""

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
    rows.update(status=DatasetStatus.DONE)
    row.status, row.at = "lost", 1
class Task:
    def end(self):
        self.status = "done"
class Answer:
    def __init__(self, status):
        self.status = status
def none(rows):
    run("UPDATE jobs SET endtime = (SELECT 1 WHERE jobstatus = 'a') WHERE jobstatus = 'sent'", "UPDATE queues SET status = 'a'")
    run("SELECT 1 FROM jobs WHERE jobstatus = 'sent' FOR UPDATE", "UPDATE jobs SET jobsubstatus = 'a'")
    rows.update(at=now, old_status=1)
'''


def test_what_writes_a_state_is_found() -> None:
    found = writers_in(SOURCE)
    assert sorted(set(found)) == ["Task.end", "_A", "_B", "_C", "_D", "several"]
    assert found.count("several") == 7


def test_states_are_written_in_lifecycle_only() -> None:
    assert writers(APART) == set(), "move it to lifecycle"


def test_the_doors_are_where_states_are_written() -> None:
    rooms = {place.split(":")[0] for place in writers(APART - {"lifecycle"}) - writers(APART)}
    assert {f"tasks_app/lifecycle/{name}.py" for name in DOORS} | {OF_ZIPS} == rooms

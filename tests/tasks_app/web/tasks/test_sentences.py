from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.job_errors import main_error
from tasks_app.domain.progress import Progress
from tasks_app.domain.states import JobStatus, TaskStatus
from tasks_app.explaining.rules.goal_words import goal_line
from tasks_app.transfers.rules.under_way import UnderWay
from tasks_app.web.tasks.sentences import TaskFacts, status_line

HALF = Progress(total=100, finished=50, failed=2, working=10)


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (TaskFacts("registered"), "Registered: it waits for the refiner."),
        (TaskFacts("running"), "Running: no job has been made yet."),
        (
            TaskFacts("running", HALF, {"running": 2, "activated": 1, "finished": 9}, sites=2),
            "Running: 50 of 100 files finished, 2 failed, 10 in jobs; 2 jobs run at 2 sites; 1 job waits for a pilot.",
        ),
        (TaskFacts("running", jobs={"sent": 1}, sites=1), "Running: 1 job starts at 1 site."),
        (
            TaskFacts("running", jobs={"running": 1, "sent": 1, "starting": 1}, sites=2),
            "Running: 1 job runs and 2 start at 2 sites.",
        ),
        (
            TaskFacts("running", Progress(4), {"activated": 1, "defined": 3}),
            "Running: 0 of 4 files finished; 1 job waits for a pilot; 3 jobs wait for their library to be built.",
        ),
        (
            TaskFacts("running", Progress(3), {"activated": 1, "assigned": 2}),
            "Running: 0 of 3 files finished; 1 job waits for a pilot; 2 jobs wait for their input to be brought to the site.",
        ),
        (
            TaskFacts("running", Progress(4), {"transferring": 4}, outgoing=UnderWay(("NORTH_DISK",), 120_000_000)),
            "Running: 0 of 4 files finished; 4 jobs wait for their outputs to be brought to NORTH_DISK, 120.0 MB left.",
        ),
        (
            TaskFacts("running", Progress(1), {"transferring": 1}, waits_for="No site."),
            "Running: 0 of 1 file finished; 1 job waits for its outputs to be brought to their destination.",
        ),
        (
            TaskFacts("ready", Progress(20, 17, working=3), {"running": 3}, sites=1),
            "Ready: 17 of 20 files finished, 3 in jobs; 3 jobs run at 1 site.",
        ),
        (
            TaskFacts("ready", Progress(20, 16, working=3), {"running": 3}, sites=1),
            "Ready: 16 of 20 files finished, 3 in jobs; 3 jobs run at 1 site; it waits for the job generator.",
        ),
        (
            TaskFacts("running", Progress(10), waits_for="All 3 sites were skipped: 2 low memory, 1 site offline."),
            "Running: 0 of 10 files finished; no job is queued: "
            "all 3 sites were skipped: 2 low memory, 1 site offline.",
        ),
        (
            TaskFacts("scouting", Progress(12, 12), grows="lab.grow"),
            "Scouting: 12 of 12 files finished; it waits for more files until the dataset lab.grow is closed.",
        ),
        (TaskFacts("scouting", Progress(12, 11), grows="lab.grow"), "Scouting: 11 of 12 files finished."),
        (
            TaskFacts("pending", error_dialog="Dataset x is not known"),
            "Pending: dataset x is not known.",
        ),
        (
            TaskFacts(
                "paused", HALF, {"running": 1}, sites=1, error_dialog="old", last_reason="paused by ada: wrong input"
            ),
            "Paused by ada: wrong input; 50 of 100 files finished, 2 failed, 10 in jobs; 1 job runs at 1 site; it "
            "continues when it is resumed.",
        ),
        (TaskFacts("paused"), "Paused: it continues when it is resumed."),
        (
            TaskFacts("failed", Progress(8, 0, 8, tried=False), error_dialog="finish by ada"),
            "Failed: 0 of 8 files finished, 8 not processed. Finish by ada.",
        ),
        (TaskFacts("done", Progress(3, 3)), "Done: 3 of 3 files finished."),
        (TaskFacts("broken", error_dialog="nFilesPerJob is not a number"), "Broken: nFilesPerJob is not a number."),
        (TaskFacts("aborted", last_reason="killed by ada: wrong input"), "Aborted: killed by ada: wrong input."),
        (
            TaskFacts("exhausted", HALF, error_dialog="too many scouts failed"),
            "Exhausted: 50 of 100 files finished, 2 failed, 10 in jobs; it stopped by itself and waits for a decision. "
            "Too many scouts failed.",
        ),
    ],
)
def test_status_line(facts: TaskFacts, line: str) -> None:
    assert status_line(facts) == line


@given(
    status=st.sampled_from(list(TaskStatus)),
    jobs=st.dictionaries(st.sampled_from([s.value for s in JobStatus]), st.integers(0, 10**6)),
    counts=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    text=st.text(max_size=30),
)
def test_every_task_has_a_sentence(status: TaskStatus, jobs: dict[str, int], counts: list[int], text: str) -> None:
    line = status_line(TaskFacts(status, Progress(*counts), jobs, 3, text, text, text))
    assert line.startswith(status.value.capitalize())
    assert line.endswith((".", "!", "?"))


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_bar_is_never_longer_than_the_whole(total: int, finished: int, failed: int, working: int) -> None:
    parts = Progress(total, finished, failed, working).parts()
    assert sum(part.width for part in parts) <= 100.01
    assert all(part.width >= 0 for part in parts)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({}, None),
        ({"pilot_error_code": 0, "trans_exit_code": "0"}, None),
        ({"pilot_error_code": 1305, "trans_exit_code": "3"}, "trans:3"),
        ({"pilot_error_code": 1137, "trans_exit_code": "0"}, "pilot:1137"),
        ({"pilot_error_code": 1137, "trans_exit_code": "2"}, "pilot:1137"),
        ({"task_buffer_error_code": 300, "task_buffer_error_diag": "killed by a user"}, "taskbuffer:300"),
        ({"exe_error_code": 65}, "exe:65"),
        ({"pilot_error_code": 1305, "exe_error_code": 65, "trans_exit_code": "65"}, "exe:65"),
    ],
)
def test_main_error(values: dict[str, object], key: str | None) -> None:
    error = main_error(values)
    assert (error.key if error else None) == key
    assert error is None or error.sentence.endswith(".")


@pytest.mark.parametrize(
    ("reached", "status", "says"),
    [
        (
            750,
            "running",
            "so that it is reached: the task is finished once every file was tried; the next look is at 02:05:09 UTC",
        ),
        (500, "running", "so that it is not reached yet; the next look is at 02:05:09 UTC"),
        (750, "pending", "so that it is reached: the task is finished once every file was tried"),
        (590, "finished", "so that it is missed"),
        (600, "finished", "so that it is reached"),
    ],
)
def test_a_goal_is_told_with_what_is_reached_of_it(reached: int, status: str, says: str) -> None:
    due = datetime(2024, 1, 1, 2, 5, 9, tzinfo=UTC)
    assert goal_line(600, reached, status, due) == f"60 % of the input; {reached / 10:g} % is processed, {says}"

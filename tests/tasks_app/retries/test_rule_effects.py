from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.job_errors import JobError
from tasks_app.domain.retry_rules import (
    Action,
    Circumstances,
    ErrorClass,
    RetryParameters,
    RetryRule,
    RetryRuleError,
    matches,
    select,
)
from tasks_app.params.splitrule import SplitRule
from tasks_app.retries.rules.memory import JobMemory, MemoryNeeds, RaisedFiles
from tasks_app.retries.rules.rule_effects import FailedJob, FileAttempts, FileChange, RetryDecision, RetryTask, decide
from tasks_app.worker_node.pilot.job_limits import Limits, Measure, verdict

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OOM = JobError("pilot", "1212", "Payload ran out of memory")
LOST = JobError("ddm", "200", "could not add files")


def rule(action: Action = Action.NO_RETRY, number: int = 1, parameters: str = "", **more: object) -> RetryRule:
    values = {"error_source": OOM.component, "error_code": OOM.number, **more}
    return RetryRule(id=number, action=action, parameters=RetryParameters.parse(parameters), **values)  # type: ignore[arg-type]


def failed(*files: FileAttempts, errors: tuple[JobError, ...] = (OOM,), **more: object) -> FailedJob:
    return FailedJob(errors, files or (FileAttempts(1, 1),), **more)  # type: ignore[arg-type]


def outcome(job: FailedJob, *rules: RetryRule, task: RetryTask | None = None) -> RetryDecision:
    return decide(job, task or RetryTask(), rules, (), NOW)


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, True),
        ({"pattern": "Payload ran"}, True),
        ({"pattern": "ran out"}, False),  # matched at the start only
        ({"pattern": ".*out of memory"}, True),
        ({"architecture": "x86_64"}, True),
        ({"architecture": "aarch64"}, False),
        ({"release": "22.0"}, True),
        ({"release": "23.0"}, False),
        ({"work_queue_id": 7}, True),
        ({"work_queue_id": 8}, False),
        ({"error_code": 1213}, False),
        ({"error_source": "exe"}, False),
        ({"expires": NOW}, False),
        ({"expires": NOW + timedelta(seconds=1)}, True),
    ],
)
def test_a_rule_fits_when_all_its_conditions_do(more: dict[str, object], fits: bool) -> None:
    assert matches(rule(**more), OOM, Circumstances("x86_64", "22.0", 7), NOW) is fits  # type: ignore[arg-type]


def test_rules_are_about_numbers_and_no_rule_is_about_an_exit_code_in_words() -> None:
    killed = JobError("trans", "SIGKILL")
    assert killed.number is None and JobError("trans", "-9").number == -9
    assert not matches(rule(error_source="trans", error_code=9), killed, Circumstances(), NOW)


def test_the_first_error_with_an_acting_rule_counts() -> None:
    on_lost = rule(number=2, error_source="ddm", error_code=200)
    found = select((LOST, OOM), (rule(), on_lost), Circumstances(), NOW)
    assert (found.error, found.rules) == (LOST, (on_lost,))
    asleep = replace(on_lost, active=False)
    found = select((LOST, OOM), (rule(), asleep), Circumstances(), NOW)
    assert (found.error, found.recorded) == (OOM, ((LOST, asleep),))


@pytest.mark.parametrize("switch", ["active", "action_active"])
def test_an_inactive_rule_is_only_recorded(switch: str) -> None:
    decision = outcome(failed(), rule(**{switch: False}))  # type: ignore[arg-type]
    assert decision.files == () and decision.reasons == ()
    assert decision.recorded[0].code == "retry_not_applicable"


def test_among_limits_more_conditions_win_then_the_smaller_limit_then_the_older() -> None:
    def winner(*rules: RetryRule) -> int:
        (only,) = select((OOM,), rules, Circumstances("x86_64"), NOW).rules
        return only.id

    limit = Action.LIMIT_RETRY
    assert winner(rule(number=1), rule(limit, 2, "maxAttempt=5", pattern="Payload")) == 2
    assert winner(rule(limit, 1, "maxAttempt=5"), rule(limit, 2, "maxAttempt=4")) == 2
    assert winner(rule(limit, 1, "maxAttempt=1"), rule(number=2)) == 2
    assert winner(rule(number=3), rule(number=2)) == 2


def test_different_actions_are_all_taken_in_order() -> None:
    rules = [rule(action, number) for number, action in enumerate(reversed(Action)) if action != Action.LIMIT_RETRY]
    taken = [r.action for r in select((OOM,), rules, Circumstances(), NOW).rules]
    assert taken == [a for a in Action if a != Action.LIMIT_RETRY]


def test_no_retry_ends_the_attempts_of_each_file() -> None:
    decision = outcome(failed(FileAttempts(1, 1), FileAttempts(2, 3), FileAttempts(3, 2, max_attempt=None)), rule())
    assert decision.files == (FileChange(1, max_attempt=1), FileChange(3, max_attempt=2))
    assert decision.gives_up == (1, 3)  # the second had none left before
    assert decision.reasons[0].detail == "pilot error 1212 is not tried again (retry rule 1)"


@pytest.mark.parametrize(
    ("attempt", "most", "limit", "wanted", "gives_up"),
    [(1, 10, 3, 3, False), (1, 3, 5, None, False), (3, 10, 3, 3, True), (4, 10, 3, 4, True)],
)
def test_a_limit_lowers_and_never_raises(
    attempt: int, most: int, limit: int, wanted: int | None, gives_up: bool
) -> None:
    decision = outcome(failed(FileAttempts(1, attempt, most)), rule(Action.LIMIT_RETRY, 1, f"maxAttempt={limit}"))
    assert [f.max_attempt for f in decision.files] == ([] if wanted is None else [wanted])
    assert bool(decision.gives_up) is gives_up


def test_more_memory_is_written_to_files_that_have_less() -> None:
    files = (FileAttempts(1, 1), FileAttempts(2, 1, ram_mb=4000), FileAttempts(3, 1, ram_mb=None))
    task = RetryTask(memory=MemoryNeeds(2000), raised=RaisedFiles(40, 100, 3000))
    decision = outcome(failed(*files, memory=JobMemory(1800)), rule(Action.INCREASE_MEMORY), task=task)
    assert decision.files == (FileChange(1, ram_mb=3000), FileChange(3, ram_mb=3000))
    assert decision.task.ram_mb == 3000
    assert [r.code for r in decision.reasons] == ["retry_more_memory", "retry_task_memory"]


def test_memory_in_the_tasks_own_steps() -> None:
    task = RetryTask(SplitRule.parse("RY=3000"), MemoryNeeds(2000), RaisedFiles(0, 100))
    decision = outcome(failed(memory=JobMemory(1800)), rule(Action.MEMORY_XTIMES), task=task)
    assert decision.files == (FileChange(1, ram_mb=3000),)


def test_more_cpu_time_follows_the_formula() -> None:
    job = failed(walltime_s=10_600.0, core_power=10.0, events=1000, memory=JobMemory(1, cores=8))
    decision = outcome(job, rule(Action.INCREASE_CPUTIME))
    # 10 000 s × 10 × 8 × 1.1 / 0.9 / 1000 events × 1.5 = 1466.7
    assert (decision.task.cpu_time, decision.task.cpu_time_unit) == (1467, "HS06sPerEvent")
    job = replace(job, events=1_000_000)
    decision = outcome(job, rule(Action.INCREASE_CPUTIME))
    assert (decision.task.cpu_time, decision.task.cpu_time_unit) == (1467, "mHS06sPerEvent")


@pytest.mark.parametrize(
    "task",
    [
        RetryTask(cpu_time=5000),
        RetryTask(cpu_time_unit="HS06sPerEventFixed"),
        RetryTask(cpu_efficiency_percent=0),
        RetryTask(base_walltime_s=20_000),
    ],
)
def test_cpu_time_stays_when_it_is_fixed_enough_or_means_nothing(task: RetryTask) -> None:
    job = failed(walltime_s=10_600.0, events=1000, memory=JobMemory(1, cores=8))
    decision = outcome(job, rule(Action.INCREASE_CPUTIME), task=task)
    assert decision.task.cpu_time is None and decision.reasons[0].code == "retry_not_applicable"


def test_cpu_time_is_measured_again_once_jobs_have_finished() -> None:
    decision = outcome(failed(), rule(Action.INCREASE_CPUTIME), task=RetryTask(has_finished=True))
    assert decision.task.measure_again and decision.task.cpu_time is None


@pytest.mark.parametrize(
    ("before", "attempt", "after"),
    [
        ("NG=10,MF=100", 1, None),
        ("NG=10,MF=100", 2, "NG=5,MF=50,RM=NG:10|MF:100"),
        ("NG=5,MF=50,RM=NG:10|MF:100", 3, None),
        ("NG=5,MF=50,RM=NG:10|MF:100", 4, "NG=2,MF=25,RM=NG:10|MF:100"),
        ("NG=2,MF=25,RM=NG:10|MF:100", 2, None),  # another file's second attempt does not make jobs larger again
        ("NG=2,MF=25,RM=NG:10|MF:100", 7, "NG=1,MF=1,RM=NG:10|MF:100"),
        ("MF=1", 4, "MF=1,RM=MF:1"),
        ("US=1", 2, "US=1,MF=100,RM=MF:200"),
        ("NF=5,NG=10", 4, None),
        ("NE=5,NG=10", 4, None),
    ],
)
def test_input_is_reduced_in_steps(before: str, attempt: int, after: str | None) -> None:
    job = failed(FileAttempts(1, 1), FileAttempts(2, attempt, 10))
    decision = outcome(job, rule(Action.REDUCE_INPUT), task=RetryTask(SplitRule.parse(before)))
    assert (None if decision.task.rule is None else str(decision.task.rule)) == after
    assert decision.reasons[0].code == ("retry_less_input" if after else "retry_not_applicable")


def test_parameters_move_the_steps_and_the_excluded_rules() -> None:
    reduce = rule(Action.REDUCE_INPUT, 1, "steps=1/2/3&excluded_rules=")
    decision = outcome(failed(FileAttempts(1, 3, 9)), reduce, task=RetryTask(SplitRule.parse("NF=3,NG=8")))
    assert str(decision.task.rule) == "NF=3,NG=1,RM=NG:8"


def test_errors_of_the_system_do_not_count_against_the_files() -> None:
    classes = (ErrorClass("ddm", 200, "payload"), ErrorClass("ddm", 200, "system", "could not"))
    files = (FileAttempts(1, 2, 10, 2, 2), FileAttempts(2, 2, 10, 2, None))
    decision = decide(failed(*files, errors=(LOST,)), RetryTask(), (), classes, NOW)
    assert decision.files == (FileChange(1, max_failure=3),)
    assert (decision.takes_up, decision.gives_up) == ((1,), ())
    assert decision.reasons[0].code == "retry_system_error"
    other = replace(LOST, detail="timeout")
    assert decide(failed(*files, errors=(other,)), RetryTask(), (), classes, NOW).files == ()


@pytest.mark.parametrize(
    ("error", "attempt", "limit", "split_rule", "raised"),
    [
        (JobError("pilot", "1201", "told to end (SIGTERM)"), 3, 3, "", 4),
        (
            JobError("jobdispatcher", "100", "Its pilot ended with the local workers that had started it"),
            1,
            3,
            "",
            4,
        ),
        (JobError("jobdispatcher", "100", "Its pilot ended without a final report"), 1, 3, "", None),
        (JobError("jobdispatcher", "100", "no heartbeat for 2 h"), 3, 3, "", None),
        (JobError("pilot", "1212", "Payload ran out of memory"), 3, 3, "", None),
        (JobError("pilot", "1201", ""), 9, 9, "", 10),
        (JobError("pilot", "1201", ""), 10, 10, "", None),
        (JobError("pilot", "1201", ""), 1, None, "", None),
        (JobError("pilot", "1201", ""), 1, 1, "DR=1", None),
    ],
)
def test_jobs_that_the_site_has_ended_use_up_no_attempt_of_their_files(
    error: JobError, attempt: int, limit: int | None, split_rule: str, raised: int | None
) -> None:
    job = failed(FileAttempts(1, attempt, limit), errors=(error,))
    decision = outcome(job, task=RetryTask(SplitRule.parse(split_rule)))
    assert decision.files == (() if raised is None else (FileChange(1, max_attempt=raised),))
    assert decision.takes_up == ((1,) if raised is not None and attempt == limit else ())
    assert [reason.code for reason in decision.reasons] == ([] if raised is None else ["retry_site_ended"])


@pytest.mark.parametrize(
    ("attempt", "limit", "split_rule", "raised"),
    [(1, 1, "", 2), (2, 3, "", 4), (9, 9, "", 10), (10, 10, "", None), (1, None, "", None), (1, 1, "DR=1", None)],
)
def test_outputs_that_could_not_be_stored_use_up_no_attempt_until_it_is_the_tenth(
    attempt: int, limit: int | None, split_rule: str, raised: int | None
) -> None:
    error = JobError("pilot", "1137", "Output x could not be stored: No space left on device")
    job = failed(FileAttempts(1, attempt, limit), errors=(error,))
    decision = outcome(job, task=RetryTask(SplitRule.parse(split_rule)))
    assert decision.files == (() if raised is None else (FileChange(1, max_attempt=raised),))
    assert [reason.code for reason in decision.reasons] == ([] if raised is None else ["retry_not_stored"])


@pytest.mark.parametrize(
    "text", ["maxAttempt=0", "maxAttempt=x", "maxAttempt=1&maxAttempt=2", "size=3", "steps=4/2/7", "steps=1/2", "2"]
)
def test_parameters_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(RetryRuleError):
        RetryParameters.parse(text)


def test_rules_that_cannot_work_are_refused() -> None:
    with pytest.raises(RetryRuleError, match=r"not taken: '\(' is not a regular expression"):
        rule(pattern="(")
    with pytest.raises(RetryRuleError, match="no maxAttempt"):
        rule(Action.LIMIT_RETRY)


some_files = st.builds(
    FileAttempts,
    file_id=st.integers(1, 5),
    attempt=st.integers(0, 12),
    max_attempt=st.none() | st.integers(0, 12),
    failed_attempt=st.integers(0, 12),
    max_failure=st.none() | st.integers(0, 12),
    ram_mb=st.none() | st.integers(0, 9000),
)
some_rules = st.builds(
    rule,
    action=st.sampled_from(Action),
    number=st.integers(1, 99),
    parameters=st.sampled_from(["maxAttempt=1", "maxAttempt=7"]),
    active=st.booleans(),
)


@given(
    files=st.lists(some_files, min_size=1, unique_by=lambda f: f.file_id),
    rules=st.lists(some_rules, max_size=6),
    split=st.sampled_from(["", "NF=2", "NG=3,RY=3000", "MF=7"]),
    stored=st.integers(0, 9000),
)
def test_attempts_never_rise_and_memory_never_falls(
    files: list[FileAttempts], rules: list[RetryRule], split: str, stored: int
) -> None:
    task = RetryTask(SplitRule.parse(split))
    decision = outcome(failed(*files, memory=JobMemory(stored)), *rules, task=task)
    before = {f.file_id: f for f in files}
    for change in decision.files:
        old = before[change.file_id]
        assert change.max_attempt is None or old.max_attempt is None or change.max_attempt < old.max_attempt
        assert change.ram_mb is None or change.ram_mb > (old.ram_mb or 0)
        assert change != FileChange(change.file_id)
    assert set(decision.gives_up) <= {i for i, f in before.items() if f.has_another}
    assert set(decision.rule_ids) <= {r.id for r in rules if r.acts}
    assert bool(decision.rule_ids) == any(r.acts for r in rules) == bool(decision.reasons)


@pytest.mark.parametrize(
    ("measure", "action"),
    [
        (Measure(rss_kb=2_000_000), Action.INCREASE_MEMORY),
        (Measure(wall_s=61.0), Action.INCREASE_CPUTIME),
        (Measure(disk_kb=2_000_000), Action.REDUCE_INPUT),
        (Measure(disk_kb=100, holes_kb=2_000_000), Action.REDUCE_INPUT),
        (Measure(unseen="a folder in it cannot be read"), Action.REDUCE_INPUT),
    ],
)
def test_a_limit_passed_behind_the_walls_of_pandas_pilot_is_followed_as_one_of_our_own_pilot(
    measure: Measure, action: Action
) -> None:
    """That pilot says no more than the payload's exit code: the sentence comes from its log."""
    own = import_module("tasks_app.migrations.0004_retry_rules_and_scouts").RULES
    behind = import_module("tasks_app.migrations.0029_limits_behind_walls").RULES
    rules = [
        RetryRule(n, source, code, Action(act), pattern, parameters=RetryParameters.parse(more))
        for n, (source, code, pattern, act, more, _) in enumerate([*own, *(("trans", 1, *rule) for rule in behind)])
    ]
    over = verdict(measure, Limits(memory_mb=500, wall_s=60, disk_mb=500))
    assert over
    taken = []
    for error in (JobError("pilot", str(int(over.code)), over.diag), JobError("trans", "1", over.diag)):
        (one,) = select(
            (error, JobError("pilot", "1305", "Failed to execute payload")), rules, Circumstances(), NOW
        ).rules
        taken.append((one.action, one.parameters))
    assert taken[0] == taken[1] and taken[0][0] == action
    assert select((JobError("trans", "1", "some words"),), rules, Circumstances(), NOW).rules == ()

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.throttle import Allowance, JobCounts, ThrottleLimits, allowance
from jedisite import refusals


@pytest.mark.parametrize(
    ("counts", "limits", "jobs", "code"),
    [
        (JobCounts(), ThrottleLimits(), 500, ""),
        (JobCounts(running=1000, queued=700, defined=100), ThrottleLimits(), 600, ""),
        (JobCounts(running=1000, queued=1900, defined=50), ThrottleLimits(), 50, ""),
        (JobCounts(running=1000, queued=1900, defined=100), ThrottleLimits(), 0, "throttled_queued"),
        (JobCounts(queued=500), ThrottleLimits(), 0, "throttled_queued"),
        (JobCounts(running=6000), ThrottleLimits(running_cap=5000), 0, "throttled_running_cap"),
        (JobCounts(running=5000), ThrottleLimits(running_cap=5000), 600, ""),
        (JobCounts(running=2000, queued=900), ThrottleLimits(queue_cap=900), 0, "throttled_queue_cap"),
        (JobCounts(running=2000, queued=890), ThrottleLimits(queue_cap=900), 10, ""),
        (JobCounts(queued=3), ThrottleLimits(min_queue=5), 2, ""),
    ],
)
def test_allowance(counts: JobCounts, limits: ThrottleLimits, jobs: int, code: str) -> None:
    answer = allowance(counts, limits)
    assert (answer.max_jobs, answer.code) == (jobs, code)


counts = st.builds(JobCounts, *[st.integers(0, 100_000)] * 3)
caps = st.none() | st.integers(0, 100_000)
limit_sets = st.builds(
    ThrottleLimits,
    threshold=st.floats(0, 10),
    min_queue=st.integers(0, 1000),
    bunch=st.integers(1, 1000),
    running_cap=caps,
    queue_cap=caps,
)


@given(counts=counts, limits=limit_sets)
def test_nothing_is_allowed_without_limit_or_refused_without_reason(counts: JobCounts, limits: ThrottleLimits) -> None:
    answer = allowance(counts, limits)
    assert 0 <= answer.max_jobs <= limits.bunch
    assert (answer.max_jobs == 0) is bool(answer.code) is bool(answer.detail)
    waiting = counts.queued + counts.defined
    if limits.queue_cap is not None and answer.max_jobs:
        assert waiting + answer.max_jobs <= limits.queue_cap


def test_an_allowance_with_an_unregistered_code_raises() -> None:
    with pytest.raises(refusals.UnknownRefusalError):
        Allowance(0, "just_because", "no reason")

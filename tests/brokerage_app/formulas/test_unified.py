import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.unified import pseudo_queues
from brokerage_app.vocabulary.resource_types import ResourceType


def shapes(cores: int, least: int, most: int) -> dict[str, tuple[int, int, int]]:
    return {
        queue.resource_type: (queue.cores, queue.min_memory_mb, queue.max_memory_mb)
        for queue in pseudo_queues("CERN", cores, least, most)
    }


def test_a_queue_of_eight_cores_has_four_pseudo_queues() -> None:
    assert shapes(8, 0, 32000) == {
        "SCORE": (1, 0, 2000),
        "SCORE_HIMEM": (1, 2001, 4000),
        "MCORE": (8, 0, 16000),
        "MCORE_HIMEM": (8, 16001, 32000),
    }
    assert [queue.name for queue in pseudo_queues("CERN", 8, 0, 32000)][:2] == ["CERN/SCORE", "CERN/SCORE_HIMEM"]


@pytest.mark.parametrize("cores", [0, 1])
def test_a_queue_of_one_core_has_no_multi_core_part(cores: int) -> None:
    assert shapes(cores, 0, 4000) == {"SCORE": (1, 0, 2000), "SCORE_HIMEM": (1, 2001, 4000)}


def test_no_limit_of_the_queue_leaves_the_limits_of_the_types() -> None:
    assert shapes(8, 0, 0) == {
        "SCORE": (1, 0, 2000),
        "SCORE_HIMEM": (1, 2001, 0),
        "MCORE": (8, 0, 16000),
        "MCORE_HIMEM": (8, 16001, 0),
    }


def test_the_lower_limit_of_the_queue_is_shared_by_its_cores() -> None:
    assert shapes(8, 8000, 32000)["SCORE"] == (1, 1000, 2000)
    open_type = (ResourceType("ANY"),)
    (queue,) = pseudo_queues("Q", 8, 8000, 32000, open_type)
    assert (queue.cores, queue.min_memory_mb, queue.max_memory_mb) == (8, 8000, 32000)
    (queue,) = pseudo_queues("Q", 8, 0, 32000, (ResourceType("FOUR", 2, 4, None, 1000),))
    assert (queue.cores, queue.min_memory_mb, queue.max_memory_mb) == (4, 0, 4000)


@given(cores=st.integers(0, 128), most=st.integers(0, 10**6))
def test_pseudo_queues_never_have_more_than_the_slot(cores: int, most: int) -> None:
    for queue in pseudo_queues("Q", cores, 0, most):
        assert 1 <= queue.cores <= max(cores, 1)
        assert not most or queue.max_memory_mb <= most

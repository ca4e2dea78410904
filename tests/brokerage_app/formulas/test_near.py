import pytest

from brokerage_app.formulas.queues_with_input import QueuesWithInput, queues_near, without_virtual
from brokerage_app.vocabulary.needs import InputData, Replica

ALL = Replica(10, 1000.0)
PART = Replica(4, 400.0, complete=False)
TAPE = Replica(10, 1000.0, is_tape=True)
READERS = {"DISK_A": ("A1", "A2"), "DISK_B": ("B",), "TAPE_C": ("C",), "V_VP_DISK": ("V",), "D_BOTH": ("B", "C")}


def data(name: str = "one", *, distributed: bool = False, **replicas: Replica) -> InputData:
    return InputData(name, 10, 1000.0, True, distributed, replicas)


def test_nothing_is_near_without_input() -> None:
    assert queues_near([], READERS) == QueuesWithInput()
    assert queues_near([InputData("empty")], READERS).datasets == 0


def test_queues_that_read_from_a_disk_with_all_of_it() -> None:
    found = queues_near([data(DISK_A=ALL, DISK_B=PART)], READERS)
    assert found.with_data == {"A1", "A2"} and not found.union
    assert found.lacks("A1") == "" and found.lacks("B") == "one"


def test_parts_count_only_where_no_disk_has_all() -> None:
    assert queues_near([data(DISK_B=PART, TAPE_C=TAPE)], READERS).with_data == {"B"}
    assert queues_near([data(DISK_B=PART, DISK_A=PART)], READERS).with_data == {"A1", "A2", "B"}
    assert queues_near([data(DISK_B=PART, DISK_A=ALL, distributed=True)], READERS).with_data == {"A1", "A2", "B"}


def test_files_that_are_together_nowhere_are_lacked_by_nobody() -> None:
    assert queues_near([data(DISK_B=PART)], READERS).lacks("A1") == ""
    assert queues_near([data(DISK_B=PART, DISK_A=ALL, distributed=True)], READERS).lacks("B") == ""


def test_disk_comes_before_tape() -> None:
    found = queues_near([data(TAPE_C=TAPE, DISK_B=ALL)], READERS)
    assert found.with_data == {"B"}
    assert (found.on_disk, found.on_tape) == ({"B": 1}, {"C": 1})
    assert queues_near([data(TAPE_C=TAPE)], READERS).with_data == {"C"}


def test_several_datasets_must_all_be_there() -> None:
    found = queues_near([data("one", DISK_A=ALL, D_BOTH=ALL), data("two", TAPE_C=TAPE, DISK_B=ALL)], READERS)
    assert found.with_data == {"B"} and not found.union
    assert found.on_disk == {"A1": 1, "A2": 1, "B": 2, "C": 1}
    on_tape = queues_near([data("one", DISK_A=ALL, D_BOTH=ALL), data("two", TAPE_C=TAPE)], READERS)
    assert on_tape.with_data == {"C"} and not on_tape.union


def test_where_no_queue_has_all_those_with_any_will_do() -> None:
    found = queues_near([data("one", DISK_A=ALL), data("two", DISK_B=ALL)], READERS)
    assert found.union and found.with_data == {"A1", "A2", "B"}
    disk_first = queues_near([data("one", DISK_A=ALL), data("two", TAPE_C=TAPE)], READERS)
    assert disk_first.union and disk_first.with_data == {"A1", "A2"}


@pytest.mark.parametrize(
    ("inputs", "virtual", "expected"),
    [
        (data(V_VP_DISK=ALL, TAPE_C=TAPE), True, {"V"}),
        (data(V_VP_DISK=ALL, TAPE_C=TAPE), False, {"C"}),
        (data(V_VP_DISK=ALL, DISK_A=ALL), True, {"A1", "A2"}),
        (data(V_VP_DISK=ALL, DISK_B=ALL, distributed=True), True, {"B"}),
    ],
)
def test_virtual_replicas_count_where_no_real_disk_has_all(
    inputs: InputData, virtual: bool, expected: set[str]
) -> None:
    assert queues_near([inputs], READERS, virtual=virtual).with_data == expected


def test_virtual_queues_are_not_real() -> None:
    found = queues_near([data(V_VP_DISK=ALL, DISK_B=PART)], READERS)
    assert found.with_data == {"V", "B"} and found.real == {"B"}
    assert without_virtual([data(V_VP_DISK=ALL, DISK_B=PART)])[0].replicas == {"DISK_B": PART}

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.naming import BadNameTemplate, NameTemplate, middle_name


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("AOD._${SN}.root", "AOD._000042.root"),
        ("AOD._${SN/P}.root", "AOD._000042.root"),
        ("AOD._${SN:04d}.root", "AOD._0042.root"),
        ("AOD._${SN:%05d}.root", "AOD._00042.root"),
        ("AOD._${SN:d}.root", "AOD._42.root"),
        ("u.$JEDITASKID.${SN}.$PANDAID", "u.7.000042.900"),
        ("u.$JOBSETID", "u.3"),
        ("100%.${SN}%d", "100%.000042%d"),
        ("a${MIDDLENAME}.${SN}", "a.mid.000042"),
        ("$JEDITASKIDS.{OTHER}", "$JEDITASKIDS.{OTHER}"),
    ],
)
def test_placeholders_of_names(template: str, name: str) -> None:
    names = NameTemplate(template, task_id=7, jobset_id=3)
    assert names.name(42, job_id=900, middle=".mid") == name


def test_a_serial_number_beyond_six_digits_is_not_cut() -> None:
    assert NameTemplate("${SN}", task_id=1).name(1_234_567) == "1234567"


@pytest.mark.parametrize("text", ["${OTHER}", "${IN}", "${SN/9999}", "${SN/}", "${p#/proc/}", "${}", "${OUTPUT0}"])
def test_other_placeholders_have_no_place_in_a_name(text: str) -> None:
    with pytest.raises(BadNameTemplate, match="cannot be used in a file name"):
        NameTemplate(f"a.{text}.${{SN}}", task_id=1)


@pytest.mark.parametrize("width", ["x", "123d", "s", "", "-3d", "0.2f", "99"])
def test_a_width_that_is_none_is_refused(width: str) -> None:
    with pytest.raises(BadNameTemplate):
        NameTemplate("a.${SN:" + width + "}", task_id=1)


def test_a_name_with_the_job_in_it_waits_for_the_job() -> None:
    template = NameTemplate("log.$PANDAID", task_id=1)
    assert template.needs_job_id
    with pytest.raises(ValueError):
        template.name(1)
    assert template.names([1, 2], [10, 11]) == ["log.10", "log.11"]


@given(serials=st.lists(st.integers(1, 10**7), unique=True, max_size=50), text=st.text(alphabet="ab%}$_.", max_size=10))
def test_different_serial_numbers_give_different_names(serials: list[int], text: str) -> None:
    template = NameTemplate(f"{text}.${{SN}}.x", task_id=1)
    names = template.names(serials)
    assert len(set(names)) == len(serials)
    assert names == [template.name(serial) for serial in serials]


@pytest.mark.parametrize(
    ("source", "fields", "middle"),
    [
        ("data18.00348885.physics_Main", (2, 3), ".00348885.physics_Main"),
        ("scope:a.b.c/", (1,), ".a"),
        ("mc.EVNT.e1_tid0123_00", (3, 4), ".e1._00"),
        ("a.b", (5,), ""),
        ("a.b", (), ""),
    ],
)
def test_fields_of_the_input_name_go_into_the_output_name(source: str, fields: tuple[int, ...], middle: str) -> None:
    assert middle_name(source, fields) == middle

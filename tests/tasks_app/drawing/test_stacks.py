from datetime import UTC, datetime, timedelta

from tasks_app.drawing.stacks import LAST_LOOK, LOOKS, OTHERS, Period, of_periods, of_series, of_tones

START = datetime(2026, 1, 31, 22, tzinfo=UTC)
END = START + timedelta(hours=8)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def test_layers_lie_on_each_other_and_end_where_their_period_does() -> None:
    found = of_periods(
        [Period(at(-1), at(2), {"low": 30}), Period(at(2), at(4), {"low": 30, "chosen": 10})], START, END, good="chosen"
    )
    assert [(one.name, one.look, one.note) for one in found.layers] == [
        ("chosen", "k2", "up to 10"),
        ("low", "k0", "up to 30"),
    ]
    chosen, low = (one.path for one in found.layers)
    assert chosen == "M275.5 210.0V160.0H481.0V210.0Z"
    assert low == "M70.0 210.0V60.0H275.5V210.0Z M275.5 160.0V10.0H481.0V160.0Z"
    assert [tick.text for tick in found.x_ticks] == [
        *("22:00", "23:00", "01 Feb"),
        *(f"0{hour}:00" for hour in range(1, 7)),
    ]
    assert [tick.text for tick in found.y_ticks] == ["0", "10", "20", "30", "40"]


def test_what_has_no_look_left_is_drawn_as_one() -> None:
    periods = [
        Period(at(0), at(1), {f"n{number}": 20 - number for number in range(12)}),
        Period(at(1), at(2), {"n0": 20}),
    ]
    found = of_periods(periods, START, END, good="chosen")
    assert [one.look for one in found.layers] == [*(look for look in LOOKS if look != "k2"), LAST_LOOK]
    assert found.layers[-1].name == OTHERS
    assert found.layers[-1].note == f"up to {sum(20 - number for number in range(6, 12))}"
    ends = [at(0), at(1)]
    lines = of_series(ends, {f"n{number}": [number, 1] for number in range(12)})
    assert [one.look for one in lines.layers] == [*LOOKS, LAST_LOOK] and lines.layers[-1].name == OTHERS
    eight = of_series(ends, {f"n{number}": [number, 1] for number in range(8)})
    assert [one.name for one in eight.layers] == [f"n{number}" for number in range(7, -1, -1)]


def test_nothing_is_an_empty_picture() -> None:
    assert of_periods([], START, END).layers == ()
    outside = [Period(at(-3), at(0), {"old": 3}), Period(at(8), at(9), {"late": 3})]
    assert of_periods(outside, START, END).layers == ()
    assert of_series([], {}).layers == () and of_series([at(0)], {"a": [None]}).layers == ()
    assert of_tones([at(0), at(1)], {"failed": [0, 0]}, {}).layers == ()


def test_lines_leave_out_times_of_which_nothing_is_known() -> None:
    found = of_series([at(0), at(1), at(2)], {"a": [4, None, 2], "b": [None, None, 2]})
    assert [(one.name, one.note) for one in found.layers] == [("a", "2"), ("b", "2")]
    assert found.layers[0].path == "M70.0,10.0 L892.0,110.0 L892.0,210.0 L70.0,210.0 Z"
    assert found.times is not None and found.times(at(1)) == 481.0


def test_a_single_time_is_a_level() -> None:
    (layer,) = of_series([at(0)], {"a": [4]}).layers
    assert layer.path == "M70.0,10.0 L892.0,10.0 L892.0,210.0 L70.0,210.0 Z"

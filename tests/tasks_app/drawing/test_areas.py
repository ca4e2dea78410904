from datetime import UTC, datetime, timedelta

from tasks_app.drawing.areas import COLOURS, OTHERS, Span, stack

START = datetime(2026, 1, 31, 22, tzinfo=UTC)
END = START + timedelta(hours=8)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def test_layers_lie_on_each_other_and_end_where_their_span_does() -> None:
    found = stack(
        [Span(at(-1), at(2), {"low": 30}), Span(at(2), at(4), {"low": 30, "chosen": 10})], START, END, ["chosen"]
    )
    assert [(one.name, one.colour, one.most) for one in found.series] == [("chosen", 1, 10), ("low", 2, 30)]
    chosen, low = (one.path for one in found.series)
    assert found.top == 40 and chosen.startswith("M256.0 196.0V149.0H468.0")
    assert low == "M44.0 196.0V55.0H256.0V196.0Z M256.0 149.0V8.0H468.0V149.0Z"
    assert [text for _, text in found.x_ticks] == ["22:00", "23:00", "01 Feb", *(f"0{hour}:00" for hour in range(1, 6))]
    assert [text for _, text in found.y_ticks] == ["0", "10", "20", "30", "40"]


def test_what_has_no_colour_left_is_drawn_as_one() -> None:
    spans = [Span(at(0), at(1), {f"n{number}": 20 - number for number in range(12)}), Span(at(1), at(2), {"n0": 20})]
    found = stack(spans, START, END, ["chosen"])
    assert [one.colour for one in found.series] == [*range(2, COLOURS + 1), 0]
    assert found.series[-1].name == OTHERS and found.series[-1].most == sum(20 - number for number in range(6, 12))


def test_nothing_is_an_empty_picture() -> None:
    assert stack([], START, END).series == ()
    assert stack([Span(at(-3), at(0), {"old": 3}), Span(at(8), at(9), {"late": 3})], START, END).series == ()

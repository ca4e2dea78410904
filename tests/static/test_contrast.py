"""The colours of the stylesheet reach WCAG AA in both themes: 4.5 for text, 3 for the pieces of bars and for outlines."""

import re
from pathlib import Path

import pytest

CSS = (Path(__file__).parents[2] / "static" / "css" / "site.css").read_text()
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", CSS)
}
TONES = ("ok", "run", "wait", "warn", "bad", "off")
TEXTS = [
    *((text, ground) for text in ("text", "muted", "link") for ground in ("bg", "surface", "raised")),
    *((tone, f"{tone}-bg") for tone in TONES),
    ("bad", "surface"),
]
OUTLINES = [("line-strong", "surface"), ("line-strong", "bg"), ("focus", "surface"), ("focus", "bg")]


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXTS)
def test_text_is_readable(text: str, ground: str, theme: int) -> None:
    assert contrast(COLOURS[text][theme], COLOURS[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("line", "ground"), OUTLINES)
def test_outlines_are_seen(line: str, ground: str, theme: int) -> None:
    assert contrast(COLOURS[line][theme], COLOURS[ground][theme]) >= 3


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("tone", ["ok", "run", "bad"])
def test_pieces_of_bars_are_seen(tone: str, theme: int) -> None:
    assert contrast(COLOURS[f"{tone}-fill"][theme], COLOURS["raised"][theme]) >= 3

"""The page of states: every move of every table is drawn, and every state and command is explained."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from django.test import Client

from tasks_app.dashboard.diagrams import Machine, draw, moves_of
from tasks_app.dashboard.machines import CHAPTERS, TASKS, Chapter
from tasks_app.states import COMMANDS

SVG = "{http://www.w3.org/2000/svg}"


def drawn(machine: Machine) -> list[tuple[str, str]]:
    """The moves that the arrows of a diagram carry."""
    picture = ElementTree.fromstring(draw(machine))
    arrows = picture.findall(f"{SVG}path")
    return [tuple(move.split(" ")) for arrow in arrows for move in arrow.attrib["data-moves"].split(";")]  # type: ignore[misc]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.slug for c in CHAPTERS])
def test_every_move_is_in_the_diagram_once_and_no_other(chapter: Chapter) -> None:
    found = drawn(chapter.machine)
    assert sorted(found) == sorted(moves_of(chapter.machine))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.slug for c in CHAPTERS])
def test_every_state_is_drawn_once_where_nothing_else_is_and_has_a_meaning(chapter: Chapter) -> None:
    picture = ElementTree.fromstring(draw(chapter.machine))
    boxes = picture.findall(f"{SVG}g")
    names = [box.findtext(f"{SVG}text") for box in boxes if box.attrib["class"] == "state"]
    assert sorted(names, key=str) == sorted(map(str, chapter.machine.moves))
    assert set(map(str, chapter.machine.moves)) <= set(chapter.meaning)
    places = [(rect.attrib["x"], rect.attrib["y"]) for box in boxes for rect in box.findall(f"{SVG}rect")]
    assert len(set(places)) == len(places)


def test_a_state_that_no_row_names_is_drawn_all_the_same() -> None:
    machine = Machine("t", (("a",),), {"a": {"b"}, "b": set()})
    assert drawn(machine) == [("a", "b")]


def test_moves_of_very_many_states_are_drawn_from_one_box() -> None:
    picture = ElementTree.fromstring(draw(TASKS))
    assert len(picture.findall(f"{SVG}path")) < len(moves_of(TASKS)) / 2


@pytest.mark.django_db
def test_the_page_explains_states_and_commands(make_user: Callable[..., object]) -> None:
    client = Client()
    client.force_login(make_user("ada"))  # type: ignore[arg-type]
    page = client.get("/help/states/").content.decode()
    assert page.count('<svg class="machine"') == len(CHAPTERS)
    for command, rule in COMMANDS.items():
        assert f"<code>{command.value}</code>" in page and rule.help in page

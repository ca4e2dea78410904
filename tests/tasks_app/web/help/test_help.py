"""The page of states: every move of every table is drawn, and every state and command is explained."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import call_command
from django.test import Client

from tasks_app.domain.task_commands import COMMANDS
from tasks_app.drawing.diagrams import Machine, draw, moves_of
from tasks_app.models import Task
from tasks_app.params.command_parameters import PARAMETERS
from tasks_app.web.help.glossary import GLOSSARY
from tasks_app.web.help.machines import CHAPTERS, TASKS, Chapter

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
        assert all(html.escape(f"{key.meaning}") in page for key in PARAMETERS.get(command, ()))


@pytest.mark.django_db
def test_what_the_pages_say_on_submitting_a_task_submits_one(reader: Client, api: Callable[..., Client]) -> None:
    for path in ("/help/", "/tasks/?view=all", "/"):
        page = reader.get(path).content.decode()
        command, rest, prun = map(html.unescape, re.findall(r'<pre class="log">(.*?)</pre>', page, re.S))
    program, *arguments = shlex.split(command)
    assert program == "manage.py"
    call_command(*arguments)
    words = shlex.split(rest)
    body = words[words.index("-d") + 1]
    answer: Any = api().post(words[1].replace("http://testserver", ""), body, content_type="application/json")
    assert answer.status_code == 201, answer.json()
    assert list(Task.objects.values_list("name", "user")) == [("user.ada.hello", "ada")] * 2
    assert "--outDS user.ada.hello" in prun and "http://testserver/server/panda" in prun
    assert "manage.py submit" not in reader.get("/tasks/?view=all").content.decode()


@pytest.mark.django_db
def test_the_glossary_defines_each_word_once_and_the_help_leads_to_it(make_user: Callable[..., object]) -> None:
    words = [term.word for term in GLOSSARY]
    assert words == sorted(set(words), key=str.lower)
    client = Client()
    client.force_login(make_user("ada"))  # type: ignore[arg-type]
    page = html.unescape(client.get("/help/glossary/").content.decode())
    assert all(term.meaning in page and f'id="{term.slug}"' in page for term in GLOSSARY)
    assert "does not offer" not in page, "words that are not of this site have no place here"
    assert "/help/glossary/" in client.get("/help/").content.decode()

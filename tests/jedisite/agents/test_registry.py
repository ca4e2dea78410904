"""The table of agents is what the agents declare beside their functions."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from datetime import timedelta

import pytest

from jedisite.agents import registry
from jedisite.agents.registry import REGISTRY, AgentSpec, Pass

ROOMS = ("brokerage_app.agents", "tasks_app.agents", "events_app.agents")
TITLE_LENGTH = range(15, 61)
AGENTS = [pytest.param(spec, id=name) for name, spec in sorted(REGISTRY.items())]


def modules(room: str) -> list[str]:
    package = importlib.import_module(room)
    return [found.name for found in pkgutil.walk_packages(package.__path__, f"{room}.") if not found.ispkg]


@pytest.mark.parametrize("module", [module for room in ROOMS for module in modules(room)])
def test_each_module_of_a_room_of_agents_declares_one_that_bears_its_name(module: str) -> None:
    names = [name for name, spec in REGISTRY.items() if spec.run.__module__ == module]
    assert module.rpartition(".")[2] in names
    assert getattr(importlib.import_module(module), "ME", names[0]) in names


def test_agents_are_in_the_rooms_of_agents_only() -> None:
    elsewhere = {spec.run.__module__ for spec in REGISTRY.values()} - {name for room in ROOMS for name in modules(room)}
    assert elsewhere == {"jedisite.agents.housekeeping"}


@pytest.mark.parametrize("spec", AGENTS)
def test_a_title_is_a_plain_sentence_about_the_agent(spec: AgentSpec) -> None:
    """It says what the agent does: the verb first, one line, no full stop, as pages show it beside the name."""
    verb, *others = spec.title.split(" ")
    assert verb.istitle() and verb.endswith("s") and len(others) >= 2
    assert len(spec.title) in TITLE_LENGTH and spec.title.isprintable() and spec.title[-1].isalpha()
    vague = {"anew", "somebody", "nobody", "obeys", "things", "words", "told", "wants", "knows"}
    assert not vague & set(spec.title.lower().split()) or "that nobody has acted on" in spec.title


def test_no_two_agents_say_the_same() -> None:
    titles = [spec.title for spec in REGISTRY.values()]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("spec", AGENTS)
def test_an_agent_makes_a_pass_without_arguments(spec: AgentSpec) -> None:
    assert all(given.default is not given.empty for given in inspect.signature(spec.run).parameters.values())


@pytest.mark.parametrize(
    ("every", "seconds"), [("2s", 2), ("0.5s", 0.5), ("10m", 600), ("1h", 3600), (timedelta(minutes=2), 120)]
)
def test_a_period_is_said_as_people_say_it(every: str | timedelta, seconds: float) -> None:
    assert registry.period_of(every) == seconds


@pytest.mark.parametrize("every", ["", "5", "s", "5 days", "-1s", "0s", timedelta()])
def test_a_period_that_is_none_is_refused(every: str | timedelta) -> None:
    with pytest.raises(ValueError, match="no period"):
        registry.period_of(every)


def test_a_name_is_that_of_one_agent() -> None:
    with pytest.raises(ValueError, match=r"two agents are called adder: tasks_app\.agents\.adder and "):
        registry.agent("adder", every="1s", title="Adds something else")(Pass)
    assert REGISTRY["adder"].run.__module__ == "tasks_app.agents.adder"

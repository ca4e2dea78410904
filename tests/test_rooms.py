"""The laws of the rooms: which there are, what each says of itself, how long files are, and that a name leads to one place.

Which room may import which is a contract in `pyproject.toml`, and so is what is pure; `test_house.py` runs them.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APPS = ("jedisite", "brokerage_app", "tasks_app", "events_app")
LONGEST = 400
AGENT_LINES = 70
QUERIES = {"filter", "exclude", "update", "raw", "create", "bulk_create", "bulk_update", "delete", "save", "cursor"}
ONE_FILE = {"tasks_app/gpi/client.py"}
"""Longer, since users copy it to where nothing of ours is installed: one file, or it would not be a copy of one."""
LOOSE = {
    "jedisite": {"apps", "audit", "light_settings", "models", "partition_sql", "refusals", "settings", "urls", "wsgi"},
    "brokerage_app": {"apps"},
    "tasks_app": {"apps", "states"},
    "events_app": {"admin", "apps", "models", "urls"},
}
"""Modules that stand beside the rooms. Landed migrations import `partition_sql` and `tasks_app.states` by these names."""
SHARED_NAMES = {"__init__", "__main__", "admin", "agents", "apps", "base", "queries", "rules", "urls"}


def modules(app: str) -> list[Path]:
    return [path for path in sorted((ROOT / app).rglob("*.py")) if "migrations" not in path.parts]


@pytest.mark.parametrize("app", APPS)
def test_no_module_stands_beside_the_rooms_but_the_few(app: str) -> None:
    assert {path.stem for path in (ROOT / app).glob("*.py")} - {"__init__"} == LOOSE[app]


@pytest.mark.parametrize("app", APPS)
def test_each_room_says_what_lives_in_it(app: str) -> None:
    """Two to five lines for a room: what it holds, what it may import, where to start reading. One will do inside a room."""
    silent, long = [], []
    for path in modules(app):
        apart = {"commands", "management", "models"} & set(path.parts)
        if path.name == "__init__.py" and not apart:
            said = ast.get_docstring(ast.parse(path.read_text())) or ""
            if not said:
                silent.append(str(path.relative_to(ROOT)))
            if len(said.splitlines()) > 6:
                long.append(str(path.relative_to(ROOT)))
    assert (silent, long) == ([], [])


@pytest.mark.parametrize("app", APPS)
def test_no_file_is_longer_than_one_can_keep_in_mind(app: str) -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules(app)}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST and path not in ONE_FILE} == {}


@pytest.mark.parametrize("app", APPS)
def test_the_name_of_a_module_leads_to_one_place(app: str) -> None:
    """Commands and agents are named for people, who type and read these names; a model has the name of its table."""
    apart = {"commands", "agents", "models"}
    loose = ROOT / app
    names = Counter(path.stem for path in modules(app) if path.parent != loose and not apart & set(path.parts))
    assert {name: count for name, count in names.items() if count > 1 and name not in SHARED_NAMES} == {}


@pytest.mark.parametrize("path", sorted((ROOT / "tasks_app" / "agents").rglob("*.py")), ids=lambda path: path.stem)
def test_an_agent_claims_calls_and_releases(path: Path) -> None:
    """What it decides, reads and writes stands in a stage: no statement, no query, and not much of anything else."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    statements = [text for text in texts if {"SELECT", "UPDATE", "INSERT", "DELETE", "EXISTS"} & set(text.split())]
    queries = [node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in QUERIES]
    assert (statements, queries) == ([], [])
    assert len(path.read_text().splitlines()) <= AGENT_LINES

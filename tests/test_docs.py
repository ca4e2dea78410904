"""README and docs are true: paths, links and commands in them exist, and indexes are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "docs/map.md"
"""Has a test of its own (`tests/tasks_app/labs/test_mapping.py`)."""
DOCS = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")})
FOLDERS = ("jedisite/", "brokerage_app/", "tasks_app/", "events_app/", "tests/", "docs/", "static/", "templates/")
ELSEWHERE = {"pilot.py"}
"""Of PanDA's pilot."""
APPS_AND_TESTS = ("jedisite", "brokerage_app", "tasks_app", "events_app", "tests")
CODE = [f"/{path.relative_to(ROOT)}" for top in APPS_AND_TESTS for path in (ROOT / top).rglob("*.py")]
# `<name>` stands for what the reader fills in.
QUOTED = re.compile(r"`([^`\n<>]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def exists(word: str) -> bool:
    """Whether a word that reads like a path leads somewhere: from the top of the checkout, or the end of a path of code."""
    if word.startswith(FOLDERS):
        return any(ROOT.glob(word.rstrip("/")))
    if word.endswith(".py") and word not in ELSEWHERE and "*" not in word:
        return word == "manage.py" or any(path.endswith(f"/{word}") for path in CODE)
    return True


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("doc", DOCS, ids=name)
def test_paths_exist(doc: Path) -> None:
    words = [word.strip(",;:") for quoted in QUOTED.findall(doc.read_text()) for word in quoted.split()]
    assert [word for word in words if re.fullmatch(r"[\w./*-]+", word) and not exists(word)] == []


@pytest.mark.parametrize("doc", DOCS, ids=name)
def test_links_lead_somewhere(doc: Path) -> None:
    broken = []
    for link in LINK.findall(doc.read_text()):
        if "://" not in link:
            path, _, at = link.partition("#")
            target = doc.parent / path if path else doc
            anchors = (
                {anchor(heading) for heading in HEADING.findall(target.read_text())} if at and target.exists() else {at}
            )
            if not target.exists() or at not in anchors:
                broken.append(link)
    assert broken == []


@pytest.mark.parametrize("doc", DOCS, ids=name)
def test_commands_exist(doc: Path) -> None:
    assert set(re.findall(r"manage\.py ([a-z_]+)", doc.read_text())) <= set(get_commands())


def test_readme_names_every_command_for_people() -> None:
    """Those that another command starts, or that only tests and labs need, may stand in docs only."""
    written = "".join(doc.read_text() for doc in DOCS if doc != MAP)
    ours = [
        command
        for command, app in get_commands().items()
        if str(app).startswith(("jedisite", "brokerage_app", "tasks_app"))
    ]
    assert [command for command in ours if not re.search(rf"\b{command}\b", written)] == []


def test_the_index_of_decisions_is_complete_and_in_order() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text()
    listed = re.findall(r"^\| \[(\d{3})\]\(((\d{3})-[\w-]+\.md)\) \| \S", index, re.MULTILINE)
    assert [file for _, file, _ in listed] == sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert all(number == of_file for number, _, of_file in listed)

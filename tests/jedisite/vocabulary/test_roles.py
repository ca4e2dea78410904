"""What the docs say of roles is what roles may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from jedisite.vocabulary.roles import RIGHT_WORDS, RIGHTS, Right, Role

IDENTITY = Path(__file__).parents[3] / "docs" / "identity.md"
ROWS = [line.split("|")[1:-1] for line in IDENTITY.read_text().splitlines() if line.startswith("| ")]
MAY = {name.strip(): may.strip() for name, *_, may in ROWS}
PEOPLE = (Role.SHIFTER, Role.PRODUCTION, Role.ADMINISTRATOR)


def words(role: Role) -> str:
    """The rights of a role as the docs give them: of people, those that users have not got."""
    known = {Right.NOTHING} | (RIGHTS[Role.USER] if role in PEOPLE else frozenset())
    said = "; ".join(text for right, text in RIGHT_WORDS.items() if right in RIGHTS[role] - known)
    return f"also: {said}" if role in PEOPLE else said


@pytest.mark.parametrize("role", [Role.USER, *PEOPLE, Role.PILOT, Role.WORKER])
def test_the_docs_say_what_a_role_may_do(role: Role) -> None:
    assert MAY[role.value] == words(role)


def test_managers_of_groups_have_the_rights_of_users_and_their_groups() -> None:
    assert RIGHTS[Role.MANAGER] == RIGHTS[Role.USER] and Role.MANAGER.value in MAY

"""Roles and what they may do: one table for the whole site. Plain values; who has which role is found in `identity`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    ANONYMOUS = "anonymous"
    USER = "user"
    MANAGER = "group manager"
    SHIFTER = "shifter"
    PRODUCTION = "production"
    ADMINISTRATOR = "administrator"
    PILOT = "pilot"
    WORKER = "worker"


class Right(StrEnum):
    """What each allows stands in RIGHT_WORDS."""

    NOTHING = "nothing"
    READ = "read"
    SUBMIT = "submit"
    TOKENS = "make tokens"
    COMMAND_ANY = "command any"
    STEER = "steer"
    OPERATE = "operate"
    PILOT = "pilot"
    WORKERS = "report workers"
    SITE_DATA = "site data"
    TELL = "tell"
    FETCH_ANY = "fetch any"


ALL = frozenset({Right.NOTHING})
PERSON = ALL | {Right.READ, Right.SUBMIT, Right.TOKENS, Right.SITE_DATA}
RIGHTS: dict[Role, frozenset[Right]] = {
    Role.ANONYMOUS: ALL,
    Role.USER: PERSON,
    Role.MANAGER: PERSON,  # and commands the tasks of its groups, see Caller.may_command
    Role.SHIFTER: PERSON | {Right.OPERATE, Right.FETCH_ANY},
    Role.PRODUCTION: PERSON | {Right.COMMAND_ANY, Right.STEER, Right.TELL, Right.FETCH_ANY},
    Role.ADMINISTRATOR: PERSON | {Right.COMMAND_ANY, Right.STEER, Right.OPERATE, Right.TELL, Right.FETCH_ANY},
    Role.PILOT: ALL | {Right.PILOT, Right.SITE_DATA},
    # Harvester has one token, with which it also fetches jobs for its workers and reports on them.
    Role.WORKER: ALL | {Right.SITE_DATA, Right.TELL, Right.WORKERS, Right.PILOT},
}


RIGHT_WORDS: dict[Right, str] = {
    Right.NOTHING: "see public data: the site's health, and the transforms that ship with it",
    Right.READ: "see tasks, jobs, sites and agents",
    Right.SUBMIT: "submit tasks and command one's own",
    Right.TOKENS: "make and revoke one's own tokens, confirm the login of a device",
    Right.COMMAND_ANY: "command anybody's tasks",
    Right.STEER: "reassign and release tasks, change their priorities, shares and needs, and the targets of shares",
    Right.OPERATE: "run and pause agents, set the status of queues, classify errors, handle items that need attention, "
    "and hand over shifts",
    Right.PILOT: "fetch jobs and report on them",
    Right.WORKERS: "report on the workers in which pilots run, and carry out commands on them",
    Right.SITE_DATA: "read the descriptions of queues and storage",
    Right.TELL: "send messages of other systems in",
    Right.FETCH_ANY: "fetch the files that anybody's tasks made",
}
"""What each right allows, for people."""


class Scope(StrEnum):
    """The scope of a token: it can remove rights of the token's owner, but not add any."""

    ALL = "all"
    SUBMIT = "submit"
    READ = "read"


SCOPES: dict[Scope, frozenset[Right]] = {
    Scope.ALL: frozenset(Right),
    Scope.SUBMIT: ALL | {Right.READ, Right.SUBMIT, Right.SITE_DATA, Right.FETCH_ANY},
    Scope.READ: ALL | {Right.READ, Right.SITE_DATA, Right.FETCH_ANY},
}
SCOPE_WORDS: dict[Scope, str] = {
    Scope.ALL: "everything that its owner may do",
    Scope.SUBMIT: "see everything, submit tasks and command one's own",
    Scope.READ: "look only",
}


BEARER: Final = "Authorization: Bearer <token>"
"""The header in which programs say who they are."""


def asks_for_token(header: str) -> str:
    """The refusal of a request without a token, by its Authorization header."""
    kind, blank, _ = header.partition(" ")
    if not kind:
        return f"This needs a token, in the header `{BEARER}`."
    if kind.lower() == "bearer":
        return f"The header Authorization has no token in it; it is `{BEARER}`."
    if not blank:  # a token alone, which nobody wants to read in a log
        return f"Tokens are sent in the header `{BEARER}`; the word Bearer and a blank are missing from this one."
    return f"Tokens are sent in the header `{BEARER}`; this one begins with {kind[:20]!r}."


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: the name for the logs, the roles, and their restrictions.

    `site`: the site that a pilot may serve, "" is any. `manages`: working groups whose tasks the caller may command;
    `member_of`: those whose files the caller may fetch.
    `vo`: the organisation whose issuer vouched for the caller, "" is this site itself. `worker`: the only pilot that this
    token is for, "" is any; `begins_with`: the program that jobs for it begin with.
    """

    name: str
    roles: frozenset[Role]
    site: str = ""
    scope: Scope = Scope.ALL
    manages: frozenset[str] = frozenset()
    member_of: frozenset[str] = frozenset()
    vo: str = ""
    worker: str = ""
    begins_with: str = ""

    def may(self, right: Right) -> bool:
        return right in SCOPES[self.scope] and any(right in RIGHTS[role] for role in self.roles)

    def lacks(self, right: Right) -> str:
        """Why the caller may not do what needs this right, as a sentence."""
        if any(right in RIGHTS[role] for role in self.roles):
            enough = [scope.value for scope in Scope if right in SCOPES[scope]]
            return f"This token's scope is {self.scope} ({SCOPE_WORDS[self.scope]}); this needs the scope {' or '.join(enough)}."
        roles = ", ".join(sorted(self.roles))
        return f"This needs the right to {RIGHT_WORDS[right]}; your {'roles are' if len(self.roles) > 1 else 'role is'} {roles}."

    def may_command(self, task_owner: str, working_group: str | None = None) -> bool:
        """Whether this caller may command a task of that owner and working group."""
        if self.may(Right.COMMAND_ANY):
            return True
        return self.may(Right.SUBMIT) and (self.name == task_owner or working_group in self.manages)

    def may_fetch(self, task_owner: str, working_group: str | None = None) -> bool:
        """Whether this caller may fetch the files that a task of that owner and working group made."""
        if self.may(Right.FETCH_ANY):
            return True
        return self.may(Right.READ) and (self.name == task_owner or working_group in self.manages | self.member_of)

    def may_submit_for(self, working_group: str | None) -> bool:
        """Whether this caller may submit tasks of that working group, and official ones; without a group: production."""
        return self.may(Right.COMMAND_ANY) or (self.may(Right.SUBMIT) and working_group in self.manages)


NOBODY = Caller("", frozenset({Role.ANONYMOUS}))

"""Statements that really go to the server: those of cursors that Django does not see are among them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_MESSAGE = re.compile(r"^\d{4}-\d\d-\d\d \S+\tF\t\d+\t(?=Query|Parse|Bind)", re.MULTILINE)
_FRAME = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")


@contextmanager
def sent() -> Iterator[list[str]]:
    """The statements that the connection sends meanwhile, as the client library writes them down; those that only begin or
    end a transaction are left out. The list is filled when the block ends."""
    found: list[str] = []
    connection.ensure_connection()
    with tempfile.TemporaryFile("w+") as file:
        connection.connection.pgconn.trace(file.fileno())
        try:
            yield found
        finally:
            connection.connection.pgconn.untrace()
        file.seek(0)
        prepared: dict[str, str] = {}
        for message in _MESSAGE.split(file.read())[1:]:
            kind, _, text = message.partition("\t ")
            if kind == "Query":
                found.append(text.partition("\n2")[0].strip('"'))
                continue
            first, name, *_ = text.split('"')[1::2]  # of Parse: name, statement; of Bind: portal, name
            if kind == "Parse":
                prepared[first] = text
            else:
                found.append(prepared.get(name, f"prepared earlier: {name}"))
    found[:] = [one for one in found if not one.lstrip().upper().startswith(_FRAME)]

"""Lookups for names in which `*` stands for anything: `name__wild="user.jane.*"`, and `iwild` for any case of letters."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, Lookup, TextField


@CharField.register_lookup
@TextField.register_lookup
class Wild(Lookup):
    """The whole text, letter for letter, but for stars. The database compares without going back over its steps."""

    lookup_name = "wild"
    operator = "LIKE"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        column, values = self.process_lhs(compiler, connection)
        text = str(self.rhs)
        for special in ("\\", "%", "_"):
            text = text.replace(special, "\\" + special)
        return f"{column} {self.operator} %s", [*values, text.replace("*", "%")]


@CharField.register_lookup
@TextField.register_lookup
class AnyCaseWild(Wild):
    """The same in any case of letters."""

    lookup_name = "iwild"
    operator = "ILIKE"

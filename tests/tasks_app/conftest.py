"""Real tables for tests of whole tasks, as in the tests of the flow."""

from tests.flow.conftest import books, tables

__all__ = ["books", "tables"]

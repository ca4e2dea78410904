"""The admin of the installation, and what the admin pages of all apps share (`base.py`, `list_filters.py`, `list_paging.py`)."""

from jedisite.admin import (  # noqa: F401 - they register their pages
    account_admin,
    installation_admin,
    token_admin,
)

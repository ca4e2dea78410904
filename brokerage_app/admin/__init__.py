"""The admin of where work may run. Django's autodiscovery imports this package, which imports its pages."""

from brokerage_app.admin import (  # noqa: F401 - they register their pages
    classes_admin,
    configuration_admin,
    grid_admin,
    grid_overview_admin,
    queue_admin,
)

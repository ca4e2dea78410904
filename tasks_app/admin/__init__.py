"""The admin of tasks and all that belongs to them. Django's autodiscovery imports this package, which imports its pages."""

from tasks_app.admin import (  # noqa: F401 - they register their pages
    alert_admin,
    attention_admin,
    failure_admin,
    message_admin,
    output_admin,
    policy_admin,
    retry_admin,
    sandbox_admin,
    shift_admin,
    task_admin,
    transfer_admin,
    worker_admin,
    workflow_admin,
)

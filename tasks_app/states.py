"""The states where landed migrations look for them; everything else imports `tasks_app.domain.states`."""

from tasks_app.domain.states import JobStatus, TaskStatus

__all__ = ["JobStatus", "TaskStatus"]

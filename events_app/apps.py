from __future__ import annotations

from django.apps import AppConfig

from jedisite.processes import garbage


class EventsConfig(AppConfig):
    name = "events_app"
    verbose_name = "Events"

    def ready(self) -> None:
        from events_app.web import added_places
        from jedisite.agents.registry import REGISTRY
        from tasks_app.audit import extra_invariants
        from tasks_app.lifecycle import job_hooks
        from tasks_app.outcomes import end_hooks

        added_places.register()
        REGISTRY.look_in("events_app.agents")
        extra_invariants.register("events_app.audit.range_invariants")
        end_hooks.register("events_app.ends.end_hook.EventEnds")
        job_hooks.when_jobs_are_stored("events_app.consumers.storing.complete_jobsets")
        job_hooks.when_a_task_is_tried_again("events_app.consumers.storing.discard_events")
        job_hooks.when_clones_are_handed_out("events_app.ends.clone_end.too_late")
        # This is the last of the apps: what all of them need has been imported.
        garbage.look_again()

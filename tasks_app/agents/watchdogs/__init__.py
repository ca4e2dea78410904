"""Watch dogs: agents that act when something takes too long, fails too often, or takes too much. One file each."""

from __future__ import annotations


def register() -> None:
    """Register those that act by the table of time-outs and by limits."""
    from jedisite.agents import passes
    from tasks_app.agents.watchdogs import (
        auto_pause,
        boost,
        classes,
        exhausted,
        goals,
        job_timeouts,
        paused_tasks,
        queue_filler,
        rebrokerage,
        replicas,
        restart_contents,
        site_statistics,
        task_withholder,
        throttle,
        user_caps,
        user_priorities,
    )
    from tasks_app.configured import timeouts

    passes.register("job_timeouts", job_timeouts.run, period_s=60, title="Ends jobs that stay in a state for too long")
    passes.register("throttle", throttle.run, period_s=60, title="Holds back tasks that need many attempts")
    passes.register("exhausted", exhausted.run, period_s=300, title="Finishes exhausted tasks nobody decides about")
    passes.register("boost", boost.run, period_s=60, title="Hurries the last jobs of nearly complete tasks")
    passes.register("auto_pause", auto_pause.run, period_s=300, title="Pauses tasks too many of whose jobs fail")
    passes.register("replicas", replicas.run, period_s=300, title="Asks again where the inputs of tasks are")
    passes.register(
        "site_statistics", site_statistics.run, period_s=60, title="Counts for the brokers what queues and users do"
    )
    passes.register(
        "goals",
        goals.run,
        period_s=timeouts.limit("task.goal").total_seconds(),
        title="Finishes tasks that have reached their goal",
    )
    passes.register("paused_tasks", paused_tasks.run, period_s=60, title="Keeps the jobs of paused tasks quiet")
    passes.register("queue_filler", queue_filler.run, period_s=600, title="Sends tasks to queues that are empty")
    passes.register(
        "task_withholder",
        task_withholder.run,
        period_s=timeouts.limit("task.withheld").total_seconds(),
        title="Holds tasks back from storage that is busy",
    )
    passes.register(
        "rebrokerage", rebrokerage.run, period_s=600, title="Takes jobs back from queues that hold too many"
    )
    passes.register(
        "user_priorities",
        user_priorities.run,
        period_s=timeouts.limit("task.crowding").total_seconds(),
        title="Moves up jobs of users who have had few",
    )
    passes.register("restart_contents", restart_contents.run, period_s=300, title="Feeds inputs that were forgotten")
    passes.register(
        "user_caps",
        user_caps.run,
        period_s=timeouts.limit("task.crowding").total_seconds(),
        title="Keeps users below their caps on jobs and data",
    )
    passes.register(
        "classes",
        classes.run,
        period_s=classes.PERIOD.total_seconds(),
        title="Classifies queues and tasks of analysis by waits and users",
    )

"""The agents of tasks. Each file holds one; `register()` puts them all into the table of agents."""

from __future__ import annotations


def register() -> None:
    from jedisite.agents import passes
    from jedisite.database import partitions
    from tasks_app.agents import (
        adder,
        attention,
        commando,
        failures,
        feeder,
        job_generator,
        libraries,
        merger,
        message_processor,
        messages,
        notification,
        periodic,
        post_processor,
        refiner,
        samples,
        task_broker,
        usual_durations,
        watchdogs,
    )
    from tasks_app.agents.watchdogs import (
        archive,
        expired_datasets,
        lost_jobs,
        old_failures,
        old_messages,
        old_samples,
        old_sandboxes,
        old_workers,
        pending,
        second_look,
        stale_locks,
        waiting_for_lib,
    )

    partitions.BY_TASK.append("jedi_dataset_contents")
    for table, months in (
        ("tasks_statuslog", 3),
        ("jobs_statuslog", 3),
        ("jedi_job_retry_history", 3),
        ("job_retry_notes", 3),
        ("jobs_archive", None),
    ):
        partitions.MONTHLY.append(partitions.Monthly(table, months))
    passes.register("refiner", refiner.run, period_s=5, title="Turns submitted parameters into a task with datasets")
    passes.register("feeder", feeder.run, period_s=5, title="Finds the files of the inputs")
    passes.register("task_broker", task_broker.run, period_s=5, title="Chooses where the outputs of tasks are gathered")
    passes.register("job_generator", job_generator.run, period_s=2, title="Cuts input into jobs for the sites")
    passes.register("merger", merger.run, period_s=3, title="Makes the jobs that merge what other jobs have written")
    passes.register("adder", adder.run, period_s=1, title="Books the outcomes of jobs on files and datasets")
    passes.register("failures", failures.run, period_s=5, title="Counts jobs that have ended, and why they failed")
    passes.register(
        "post_processor", post_processor.run, period_s=3, title="Finishes tasks that have nothing left to do"
    )
    passes.register("libraries", libraries.run, period_s=10, title="Starts or ends the jobs that wait for a build")
    passes.register("commando", commando.run, period_s=3, title="Obeys the commands of users")
    passes.register("pending", pending.run, period_s=5, title="Tries again what was set aside")
    passes.register("lost_jobs", lost_jobs.run, period_s=5, title="Fails jobs whose pilot has fallen silent")
    watchdogs.register()
    passes.register("stale_locks", stale_locks.run, period_s=5, title="Frees claims whose holder is gone")
    passes.register(
        "waiting_for_lib", waiting_for_lib.run, period_s=300, title="Finds jobs that wait for a build that has ended"
    )
    passes.register("second_look", second_look.run, period_s=30, title="Measures running tasks anew from finished jobs")
    passes.register(
        "usual_durations", usual_durations.run, period_s=3600, title="Measures how long tasks usually stay in a state"
    )
    passes.register("archive", archive.run, period_s=300, title="Moves old jobs to the archive")
    passes.register(
        "expired_datasets",
        expired_datasets.run,
        period_s=600,
        title="Deletes outputs that were to be kept for a time only",
    )
    passes.register("messages", messages.run, period_s=2, title="Publishes changes of states")
    passes.register("message_processor", message_processor.run, period_s=5, title="Obeys messages of other systems")
    passes.register("notification", notification.run, period_s=10, title="Mails owners when their tasks end or stop")
    passes.register("old_failures", old_failures.run, period_s=3600, title="Deletes counts of errors of long ago")
    passes.register("old_messages", old_messages.run, period_s=3600, title="Deletes messages and mails of long ago")
    passes.register("attention", attention.run, period_s=30, title="Looks for what needs somebody")
    passes.register(
        "attention_tasks", attention.run_slow, period_s=300, title="Looks for tasks and shares that stand still"
    )
    passes.register("samples", samples.run, period_s=30, title="Writes down every five minutes what the grid does")
    passes.register("old_samples", old_samples.run, period_s=3600, title="Deletes samples of long ago")
    passes.register("old_sandboxes", old_sandboxes.run, period_s=3600, title="Removes sandboxes that nobody uses")
    passes.register("old_workers", old_workers.run, period_s=3600, title="Deletes workers and their words of long ago")
    passes.register("periodic", periodic.run, period_s=10, title="Makes input of tasks that have a schedule")

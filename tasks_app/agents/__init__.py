"""The agents of tasks. Each file holds one; `register()` puts them all into the table of agents."""

from __future__ import annotations


def register() -> None:
    from jedisite import agents, partitions
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
    agents.register("refiner", refiner.run, period_s=5, title="Turns submitted parameters into a task with datasets")
    agents.register("feeder", feeder.run, period_s=5, title="Finds the files of the inputs")
    agents.register("task_broker", task_broker.run, period_s=5, title="Chooses where the outputs of tasks are gathered")
    agents.register("job_generator", job_generator.run, period_s=2, title="Cuts input into jobs for the sites")
    agents.register("merger", merger.run, period_s=3, title="Makes the jobs that merge what other jobs have written")
    agents.register("adder", adder.run, period_s=1, title="Books the outcomes of jobs on files and datasets")
    agents.register("failures", failures.run, period_s=5, title="Counts jobs that have ended, and why they failed")
    agents.register(
        "post_processor", post_processor.run, period_s=3, title="Finishes tasks that have nothing left to do"
    )
    agents.register("libraries", libraries.run, period_s=10, title="Starts or ends the jobs that wait for a build")
    agents.register("commando", commando.run, period_s=3, title="Obeys the commands of users")
    agents.register("pending", pending.run, period_s=5, title="Tries again what was set aside")
    agents.register("lost_jobs", lost_jobs.run, period_s=5, title="Fails jobs whose pilot has fallen silent")
    watchdogs.register()
    agents.register("stale_locks", stale_locks.run, period_s=5, title="Frees claims whose holder is gone")
    agents.register(
        "waiting_for_lib", waiting_for_lib.run, period_s=300, title="Finds jobs that wait for a build that has ended"
    )
    agents.register("second_look", second_look.run, period_s=30, title="Measures running tasks anew from finished jobs")
    agents.register(
        "usual_durations", usual_durations.run, period_s=3600, title="Measures how long tasks usually stay in a state"
    )
    agents.register("archive", archive.run, period_s=300, title="Moves old jobs to the archive")
    agents.register(
        "expired_datasets",
        expired_datasets.run,
        period_s=600,
        title="Deletes outputs that were to be kept for a time only",
    )
    agents.register("messages", messages.run, period_s=2, title="Publishes changes of states")
    agents.register("message_processor", message_processor.run, period_s=5, title="Obeys messages of other systems")
    agents.register("notification", notification.run, period_s=10, title="Mails owners when their tasks end or stop")
    agents.register("old_failures", old_failures.run, period_s=3600, title="Deletes counts of errors of long ago")
    agents.register("old_messages", old_messages.run, period_s=3600, title="Deletes messages and mails of long ago")
    agents.register("attention", attention.run, period_s=30, title="Looks for what needs somebody")
    agents.register(
        "attention_tasks", attention.run_slow, period_s=300, title="Looks for tasks and shares that stand still"
    )
    agents.register("samples", samples.run, period_s=30, title="Writes down every five minutes what the grid does")
    agents.register("old_samples", old_samples.run, period_s=3600, title="Deletes samples of long ago")
    agents.register("old_sandboxes", old_sandboxes.run, period_s=3600, title="Removes sandboxes that nobody uses")
    agents.register("old_workers", old_workers.run, period_s=3600, title="Deletes workers and their words of long ago")
    agents.register("periodic", periodic.run, period_s=10, title="Makes input of tasks that have a schedule")

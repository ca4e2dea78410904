from __future__ import annotations

from django.urls import path

from tasks_app.dashboard import (
    agents,
    configuration,
    help,
    histograms,
    jobs,
    metrics,
    overview,
    shares,
    sites,
    tasks,
    timeouts,
    why,
    workers,
)

app_name = "dashboard"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("search/", overview.search, name="search"),
    path("tasks/", tasks.task_list, name="tasks"),
    path("tasks/<int:task_id>/", tasks.task_page, name="task"),
    path("tasks/<int:task_id>/why/", why.task_why, name="task-why"),
    path("tasks/<int:task_id>/what-if/", why.task_what_if, name="task-what-if"),
    path("tasks/<int:task_id>/command/", tasks.give_command, name="task-command"),
    path("tasks/<int:task_id>/histograms/", histograms.task_histograms, name="task-histograms"),
    path("tasks/<int:task_id>/histograms/<int:file_id>/", histograms.histogram_page, name="histogram"),
    path("jobs/", jobs.job_list, name="jobs"),
    path("jobs/<int:job_id>/", jobs.job_page, name="job"),
    path("jobs/<int:job_id>/log/", jobs.job_log, name="job-log"),
    path("help/states/", help.states, name="help-states"),
    path("help/configuration/", configuration.configuration_page, name="help-configuration"),
    path("sites/", sites.site_list, name="sites"),
    path("sites/<path:name>/why/", why.site_why, name="site-why"),
    path("shares/", shares.share_list, name="shares"),
    path("shares/<path:name>/why/", why.share_why, name="share-why"),
    path("shares/<path:name>/", shares.share_page, name="share"),
    path("share-targets/", shares.share_targets, name="share-targets"),
    path("share-targets/change/", shares.share_targets_change, name="share-targets-change"),
    path("workers/", workers.worker_list, name="workers"),
    path("workers/<int:worker_id>/", workers.worker_page, name="worker"),
    path("agents/", agents.agent_list, name="agents"),
    path("metrics", metrics.metrics, name="metrics"),
    path("timeouts/", timeouts.timeout_list, name="timeouts"),
    path("agents/<slug:name>/", agents.agent_action, name="agent-action"),
]

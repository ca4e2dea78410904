from __future__ import annotations

from django.urls import path

from tasks_app.web.brokerage import brokerage_pages, whatif_pages, why_pages
from tasks_app.web.data import catalogued, data_pages, transfers_page
from tasks_app.web.errors import error_pages, fingerprint_page, pivot_page
from tasks_app.web.help import help_pages
from tasks_app.web.jobs import job_comparing, job_doing, job_pages
from tasks_app.web.lists import views
from tasks_app.web.machinery import agent_pages, configuration_pages, metrics, timeout_pages, trail, worker_pages
from tasks_app.web.overview import attention_pages, overview
from tasks_app.web.search import search_pages
from tasks_app.web.shares import share_pages, work_queue_pages
from tasks_app.web.shift import shift_pages
from tasks_app.web.sites import site_page, site_pages
from tasks_app.web.tasks import doing, histograms, task_inputs, task_outputs, task_pages, task_tabs, timelines
from tasks_app.web.users import own_tasks, user_pages
from tasks_app.web.workflows import checking, line_pages, workflow_doing, workflow_pages

app_name = "dashboard"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("attention/", attention_pages.attention_list, name="attention"),
    path("attention/<int:item_id>/", attention_pages.attention_action, name="attention-action"),
    path("shift/", shift_pages.shift, name="shift"),
    path("shift/report.txt", shift_pages.shift_report, name="shift-report"),
    path("shift/notes/", shift_pages.shift_note, name="shift-note"),
    path("shift/hand-over/", shift_pages.shift_hand_over, name="shift-hand-over"),
    path("shift/hand-over/<int:handover_id>/acknowledge/", shift_pages.shift_acknowledge, name="shift-acknowledge"),
    path("search/", search_pages.search, name="search"),
    path("search/suggestions/", search_pages.suggestions, name="search-suggestions"),
    path("tasks/", task_pages.task_list, name="tasks"),
    path("tasks/<int:task_id>/", task_pages.task_page, name="task"),
    path("tasks/<int:task_id>/why/", why_pages.task_why, name="task-why"),
    path("tasks/<int:task_id>/what-if/", whatif_pages.task_what_if, name="task-what-if"),
    path("tasks/compare/", task_tabs.task_compare, name="task-compare"),
    path("tasks/<int:task_id>/inputs/", task_inputs.task_inputs, name="task-inputs"),
    path("tasks/<int:task_id>/outputs/", task_outputs.task_outputs, name="task-outputs"),
    path("tasks/<int:task_id>/jobs/", task_tabs.task_jobs, name="task-jobs"),
    path("tasks/<int:task_id>/sites/", task_tabs.task_sites, name="task-sites"),
    path("tasks/<int:task_id>/scouts/", task_tabs.task_scouts, name="task-scouts"),
    path("tasks/<int:task_id>/flow/", task_tabs.task_flow, name="task-flow"),
    path("tasks/<int:task_id>/profile/", task_tabs.task_profile, name="task-profile"),
    path("tasks/<int:task_id>/params/", task_tabs.task_params, name="task-params"),
    path("tasks/<int:task_id>/audit/", task_tabs.task_audit, name="task-audit"),
    path("tasks/bulk/", doing.tasks_bulk, name="tasks-bulk"),
    path("tasks/<int:task_id>/timeline/", timelines.task_timeline, name="task-timeline"),
    path("tasks/<int:task_id>/do/<slug:name>/", doing.task_do, name="task-do"),
    path("tasks/<int:task_id>/histograms/", histograms.task_histograms, name="task-histograms"),
    path("tasks/<int:task_id>/histograms/<int:file_id>/", histograms.histogram_page, name="histogram"),
    path("tasks/<int:task_id>/errors/", error_pages.task_errors, name="task-errors"),
    path("workflows/", workflow_pages.workflow_list, name="workflows"),
    path("workflows/check/", checking.workflow_check, name="workflow-check"),
    path("workflows/packages/bulk/", workflow_doing.workflow_packages_bulk, name="workflow-packages-bulk"),
    path("workflows/<int:workflow_id>/", workflow_pages.workflow_page, name="workflow"),
    path("workflows/<int:workflow_id>/dagman/", workflow_pages.workflow_dagman, name="workflow-dagman"),
    path("workflows/<int:workflow_id>/packages/", line_pages.workflow_packages, name="workflow-packages"),
    path("workflows/<int:workflow_id>/lines/<path:line>/", line_pages.workflow_line, name="workflow-line"),
    path("workflows/<int:workflow_id>/do/<slug:name>/", workflow_doing.workflow_do, name="workflow-do"),
    path("errors/", error_pages.error_list, name="errors"),
    path("errors/pivot/", pivot_page.error_pivot, name="errors-pivot"),
    path("errors/jobs/", error_pages.error_jobs, name="errors-jobs"),
    path("errors/<int:number>/", fingerprint_page.error_page, name="error"),
    path("errors/<int:number>/classify/", fingerprint_page.classify, name="error-classify"),
    path("jobs/", job_pages.job_list, name="jobs"),
    path("jobs/bulk/", job_doing.jobs_bulk, name="jobs-bulk"),
    path("jobs/<int:job_id>/timeline/", timelines.job_timeline, name="job-timeline"),
    path("jobs/compare/", job_comparing.compare, name="jobs-compare"),
    path("jobs/<int:job_id>/do/<slug:name>/", job_doing.job_do, name="job-do"),
    path("jobs/<int:job_id>/", job_pages.job_page, name="job"),
    path("jobs/<int:job_id>/why/", why_pages.job_why, name="job-why"),
    path("jobs/<int:job_id>/log/", job_pages.job_log, name="job-log"),
    path("views/", views.view_list, name="views"),
    path("views/save/", views.save_view, name="view-save"),
    path("views/<int:view_id>/", views.change_view, name="view-change"),
    path("brokerage/", brokerage_pages.brokerage_page, name="brokerage"),
    path("brokerage/what-if/", whatif_pages.what_if, name="what-if"),
    path("brokerage/<int:verdict_id>/", brokerage_pages.decision, name="decision"),
    path("help/codes/", brokerage_pages.codes_page, name="help-codes"),
    path("help/codes/<slug:code>/", brokerage_pages.code_page, name="code"),
    path("help/", help_pages.guide, name="help"),
    path("help/states/", help_pages.states, name="help-states"),
    path("help/parameters/", help_pages.task_parameters, name="help-parameters"),
    path("help/glossary/", help_pages.glossary, name="help-glossary"),
    path("help/configuration/", configuration_pages.configuration_page, name="help-configuration"),
    path("sites/", site_pages.site_list, name="sites"),
    path("sites/<path:name>/why/", why_pages.site_why, name="site-why"),
    path("sites/<path:name>/nodes/", site_page.site_nodes, name="site-nodes"),
    path("sites/<path:name>/data/", site_page.site_data, name="site-data"),
    path("sites/<path:name>/status/", site_page.site_status, name="site-status"),
    path("sites/<path:name>/note/", site_page.site_note, name="site-note"),
    path("sites/<path:name>/", site_page.site_page, name="site"),
    path("queues/", work_queue_pages.queue_list, name="queues"),
    path("queues/tester/", work_queue_pages.queue_tester, name="queue-tester"),
    path("queues/<int:queue_id>/", work_queue_pages.queue_page, name="queue"),
    path("shares/", share_pages.share_list, name="shares"),
    path("shares/<path:name>/why/", why_pages.share_why, name="share-why"),
    path("shares/<path:name>/", share_pages.share_page, name="share"),
    path("share-targets/", share_pages.share_targets, name="share-targets"),
    path("share-targets/change/", share_pages.share_targets_change, name="share-targets-change"),
    path("workers/", worker_pages.worker_list, name="workers"),
    path("workers/<int:worker_id>/", worker_pages.worker_page, name="worker"),
    path("agents/", agent_pages.agent_list, name="agents"),
    path("data/", data_pages.data, name="data"),
    path("transfers/", transfers_page.transfers, name="transfers"),
    path("data/<int:dataset_id>/", data_pages.dataset_page, name="dataset"),
    path("data/catalogue/<int:number>/", catalogued.catalogued_page, name="catalogued"),
    path("my-tasks/", own_tasks.own_tasks, name="own-tasks"),
    path("my-tasks/seen/", own_tasks.own_tasks_seen, name="own-tasks-seen"),
    path("users/", user_pages.user_list, name="users"),
    path("users/<path:name>/", user_pages.user_page, name="user"),
    path("audit/", trail.trail, name="audit"),
    path("metrics", metrics.metrics, name="metrics"),
    path("timeouts/", timeout_pages.timeout_list, name="timeouts"),
    path("agents/<slug:name>/", agent_pages.agent_page, name="agent"),
    path("agents/<slug:name>/order/", agent_pages.agent_action, name="agent-action"),
    path("agents/<slug:name>/passes/<int:pass_id>/", agent_pages.pass_page, name="agent-pass"),
]

"""Books on single events. It may import `tasks_app`, which never imports it."""

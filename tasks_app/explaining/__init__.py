"""Why: the answers for a task, a site and a share, put together from what the agents have left behind."""

"""Pages on queues and sites."""

"""Pages on global shares and work queues."""

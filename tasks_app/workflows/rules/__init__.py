"""What a workflow is, how it is written and read, which package waits for which, and what drops, failures and ends mean. Pure."""

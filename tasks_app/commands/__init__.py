"""What users command their tasks to do: parameters of commands, hard limits of retries, and the actions themselves."""

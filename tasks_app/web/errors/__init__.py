"""Pages on failures: kinds of errors, how they are spread, the list of failed jobs."""

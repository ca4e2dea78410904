"""What the lists of tasks, jobs and the rest can show: one table for page, API and export (`jedisite.columns`)."""

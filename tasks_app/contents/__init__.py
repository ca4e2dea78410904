"""Which files of its inputs a task gets, and when: selection, growing and changing datasets, containers."""

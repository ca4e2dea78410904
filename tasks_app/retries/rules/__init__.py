"""What retry rules do to files and tasks, and how memory is raised. Pure."""

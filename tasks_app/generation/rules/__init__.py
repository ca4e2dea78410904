"""Which jobs a task gets in its turn, at which sites, and what is said when it gets none. Pure."""

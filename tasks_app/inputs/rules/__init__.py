"""Which files of a listing a task wants, and how many are released. Pure."""

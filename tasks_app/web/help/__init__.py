"""The help, drawn from the tables of the code."""

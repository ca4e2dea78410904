"""The Python client of the resource API: one file that runs anywhere with the standard library."""

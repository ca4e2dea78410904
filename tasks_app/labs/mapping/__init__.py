"""The lists of `docs/map.md`, made from the tables of the code: `entries.py` reads the tables, `reading.py` the files."""

"""The lists of `docs/map.md`, made from the tables of the code: `map_lists.py` reads the tables, `code_files.py` the files."""

"""The pages, a folder a section. Start at `urls.py`.

A page reads through the floors below and draws with `drawing`; it decides nothing.
"""

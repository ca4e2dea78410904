"""Decisions on files in storage. Pure."""

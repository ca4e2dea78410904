"""Decisions on failures. Pure."""

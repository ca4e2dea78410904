"""Decisions on transfers: values in, values out."""

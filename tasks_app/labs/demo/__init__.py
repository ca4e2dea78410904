"""The demonstration: real tasks with real payloads on real files."""

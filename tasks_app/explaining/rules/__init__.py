"""From facts to gates and sentences. Pure."""

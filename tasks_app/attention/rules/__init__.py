"""The rules for attention items: facts in, findings out. Pure, one function per rule."""

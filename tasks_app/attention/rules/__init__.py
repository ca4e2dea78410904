"""The rules by which something needs somebody: facts in, findings out. Pure, one function a rule."""

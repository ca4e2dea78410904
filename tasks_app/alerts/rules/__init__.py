"""What a rule tells, when, and in which words. Pure."""

"""The agents of the brokerage: a file each. `@agent` beside the function says name and period.

Imports the floors below.
"""

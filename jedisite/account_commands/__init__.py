"""Django's commands on accounts, with entries in the audit trail. An application of its own, since of two commands with
one name the one of the application that is listed first is run.
"""

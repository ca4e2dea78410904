"""Forms and choices of single parameters, with their words for messages."""

from __future__ import annotations

from tasks_app.params.kinds import Address, Form, Moment

TASK_NUMBER = Form(r"\d+", "give the number of the task")
FIELD = Form(r"[1-9]\d{0,2}", "a field is a number from 1 to 999")
WAYS = Form(
    r"(?:(?:direct|root|davs|file|fax)(?:,(?!$)|$))*",
    "give one or more of direct, root, davs, file and fax, separated by commas",
)
TIME = Moment("", "give a time in UTC such as 2031-05-06 07:08:09")
SERVER = Address(r"((https?|file)://.*)?", "it is not a valid address, such as https://server.example:8443")
UNIT_OF_DISK = tuple(
    f"{unit}{per}{fixed}" for unit in ("B", "kB", "MB", "GB") for per in ("", "PerEvent") for fixed in ("", "Fixed")
)
UNIT_OF_CPU = ("HS06sPerEvent", "mHS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEventFixed")
UNIT_OF_WALLTIME = ("kSI2kseconds",)
UNIT_OF_RAM = ("MB", "MBPerCore", "MBPerCoreFixed")

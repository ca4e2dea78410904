"""Storage, and where the input lies."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

NO_DIRECT_ACCESS: Final = code(
    "no_direct_access",
    "Input cannot be read directly",
    "data",
    "user",
    "Let the task copy its input, or allow sites where it is read from the storage.",
    severity="error",
)
STORAGE_FULL: Final = code(
    "storage_full",
    "The site's storage is full",
    "data",
    "site",
    "Wait until space is freed; STORAGE_MIN_FREE_SIZE is the usable space that is needed, beyond what must stay free.",
)
INPUT_NOT_READABLE: Final = code(
    "input_not_readable",
    "Storage cannot be read locally",
    "data",
    "site",
    "Wait until an input endpoint of the queue can be read again.",
)
OUTPUT_NOT_WRITABLE: Final = code(
    "output_not_writable",
    "Storage cannot be written locally",
    "data",
    "site",
    "Wait until an output endpoint of the queue can be written again.",
)
STORAGE_NOT_RECEIVING: Final = code(
    "storage_not_receiving",
    "Storage accepts no files from outside",
    "data",
    "site",
    "Wait until an input endpoint of the queue can be written from outside again.",
)
STORAGE_NOT_SENDING: Final = code(
    "storage_not_sending",
    "Storage sends no files",
    "data",
    "site",
    "Wait until an output endpoint of the queue can be read from outside again.",
)
SOURCE_NOT_SENDING: Final = code(
    "source_not_sending",
    "No source can send the input",
    "data",
    "site",
    "Wait until a storage with the whole input can be read from outside again.",
)
TOO_MUCH_INPUT_MISSING: Final = code(
    "too_much_input_missing",
    "Too much input is missing at the queue",
    "data",
    "nobody",
    "Tasks with high I/O run near their input; SIZE_CUTOFF_TO_MOVE_INPUT and NUM_CUTOFF_TO_MOVE_INPUT limit what is moved.",
)
INPUT_NOT_LOCAL: Final = code(
    "input_not_local",
    "Queue uses local input only",
    "data",
    "nobody",
    "The queue never gets input from elsewhere; replicate the input there to use it.",
    severity="info",
)
INPUT_IN_DOWNTIME: Final = code(
    "input_in_downtime",
    "The input cannot be reached",
    "data",
    "site",
    "Wait until a storage with the whole input is up again, or replicate the input elsewhere.",
)
INPUT_INCOMPLETE: Final = code(
    "input_incomplete",
    "The input is complete nowhere",
    "data",
    "user",
    "Replicate the input to one storage, or use a dataset whose files exist.",
    severity="error",
)
NO_DATA_THERE: Final = code(
    "no_data_there",
    "The input is not at the queue",
    "data",
    "nobody",
    "Analysis goes to its input first; replicate the input there, or wait until every queue with it is refused.",
)
FILES_NOT_THERE: Final = code(
    "files_not_there",
    "Input files are missing at the queue",
    "data",
    "nobody",
    "Only queues with all input files are used; replicate the missing files there.",
)
VIRTUAL_STORAGE: Final = code(
    "virtual_storage",
    "Storage is virtual",
    "data",
    "user",
    "Remove avoidVP from the task to allow queues that fetch their input while they read it.",
    severity="info",
)
NO_OUTPUT_STORAGE: Final = code(
    "no_output_storage",
    "No storage for outputs",
    "data",
    "site",
    "Give the queue an endpoint to which analysis jobs may write.",
)
LOCAL_QUOTA: Final = code(
    "local_quota",
    "No quota left at the storage",
    "data",
    "user",
    "Delete some of your datasets there, or ask for a larger quota.",
)
NUCLEUS_NO_STORAGE: Final = code(
    "nucleus_no_storage",
    "Nucleus has no storage for the outputs",
    "data",
    "user",
    "Choose a storage token that more nuclei have, or none.",
    severity="error",
)
NUCLEUS_READ_DOWN: Final = code(
    "nucleus_read_down",
    "The nucleus's storage cannot be read from outside",
    "data",
    "shifter",
    "Wait until the storage can be read from outside again (read_wan).",
)
NUCLEUS_WRITE_DOWN: Final = code(
    "nucleus_write_down",
    "The nucleus's storage cannot be written from outside",
    "data",
    "shifter",
    "Wait until the storage can be written from outside again (write_wan).",
)
NUCLEUS_SPACE: Final = code(
    "nucleus_space",
    "Not enough space at the nucleus",
    "data",
    "expert",
    "Delete data at the nucleus, or lower DISK_THRESHOLD for the task's share.",
)
NUCLEUS_INPUT_SIZE: Final = code(
    "nucleus_input_size",
    "Too little of the input is at the nucleus",
    "data",
    "expert",
    "Copy the input to a nucleus, raise the task's priority, or wait: after DATA_LOCATION_CHECK_PERIOD any nucleus will do.",
)
NUCLEUS_INPUT_FILES: Final = code(
    "nucleus_input_files",
    "Too few files of the input are at the nucleus",
    "data",
    "expert",
    "Copy the input to a nucleus, raise the task's priority, or wait: after DATA_LOCATION_CHECK_PERIOD any nucleus will do.",
)

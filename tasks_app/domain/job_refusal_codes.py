"""The refusal codes of jobs: why one waits, and why one was ended. A code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from tasks_app.domain.refusal_codes import code

JOB_WAITED_TOO_LONG: Final = code(
    "job_waited_too_long",
    "Job was not started in time",
    "time",
    "nobody",
    "Nothing needs to be done: its inputs go into a new job, possibly elsewhere.",
)
JOB_QUEUE_INACTIVE: Final = code(
    "job_queue_inactive",
    "Urgent job waited at a queue that starts none",
    "time",
    "site",
    "Nothing needs to be done for the job; find out why the queue starts none.",
)
JOB_QUEUE_OVERLOADED: Final = code(
    "job_queue_overloaded",
    "Queue has more jobs than it can start",
    "capacity",
    "nobody",
    "Nothing needs to be done: the excess jobs are made again, possibly elsewhere.",
    severity="info",
)
JOB_LOST_HEARTBEAT: Final = code(
    "job_lost_heartbeat",
    "Job sent no heartbeat",
    "time",
    "site",
    "Its inputs are tried again; if this happens often, check the worker nodes and the batch system of the site.",
    severity="error",
)
JOB_NOT_BOOKED: Final = code(
    "job_not_booked",
    "End of the job was not recorded in time",
    "time",
    "expert",
    "Its inputs are tried again; check whether the adder processes reports.",
    severity="error",
)
JOB_TRANSFER_TOO_LONG: Final = code(
    "job_transfer_too_long",
    "Outputs did not arrive in time",
    "data",
    "site",
    "Its inputs are tried again; check the transfers from the site.",
    severity="error",
)
JOB_TRANSFER_UNCHECKED: Final = code(
    "job_transfer_unchecked",
    "Transfer of the outputs is checked again",
    "data",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
JOB_RAN_TOO_LONG: Final = code(
    "job_ran_too_long",
    "Job ran for too long",
    "time",
    "user",
    "Make shorter jobs: fewer files or events in each.",
    severity="error",
)
JOB_NO_PARENT: Final = code(
    "job_no_parent",
    "Merge job has nothing to merge",
    "state",
    "nobody",
    "Nothing needs to be done: the merge job is ended.",
    severity="info",
)

JOB_ENDED_BADLY: Final = code(
    "job_ended_badly",
    "Job has ended without success",
    "state",
    "user",
    "Look at its error; its inputs are tried again in a new job while they have attempts left.",
    severity="error",
)
JOB_WAITS_FOR_LIBRARY: Final = code(
    "job_waits_for_library",
    "Job waits for its library",
    "input",
    "nobody",
    "Wait for the build job; if it fails, read its log.",
    severity="info",
)
JOB_WAITS_FOR_INPUT: Final = code(
    "job_waits_for_input",
    "Input is on its way to the site",
    "input",
    "nobody",
    "Wait for the transfer; if it takes long, see the page Transfers.",
    severity="info",
)
COPY_WITHOUT_DISK: Final = code(
    "copy_without_disk",
    "No storage on disk takes files",
    "data",
    "site",
    "Allow writing to a storage on disk again, or add one; what waits for it is on the page Transfers.",
)
COPY_WITHOUT_SOURCE: Final = code(
    "copy_without_source",
    "No replica of a file can be read",
    "data",
    "site",
    "Allow reading from a storage that has the file, or put the file back; copies are on the page Transfers.",
)
COPY_STORAGE_GONE: Final = code(
    "copy_storage_gone",
    "Storage is none of this machine",
    "data",
    "site",
    "Give the storage its folder (path) again, in the admin under Storage endpoints, before the last attempt; "
    "all errors are on the page Transfers.",
)
COPY_STORAGE_OFF: Final = code(
    "copy_storage_off",
    "Storage is closed to transfers",
    "data",
    "site",
    "Allow the storage to be read and written again, in the admin under Storage endpoints; copies then go on by themselves, "
    "see the page Transfers.",
)
COPY_STORAGE_CLOSED: Final = code(
    "copy_storage_closed",
    "Storage is closed for a while",
    "data",
    "site",
    "Find out why jobs cannot store their outputs there; copies go on by themselves when it opens, at the time given or once a "
    "job has stored its outputs, see the page Transfers.",
)
COPY_LINK_OFF: Final = code(
    "copy_link_off",
    "Link is switched off",
    "data",
    "expert",
    "Give AGIS_closeness of the link a value from 0 to 11, in the admin under Link values or with import_sites; copies then "
    "go on by themselves, see the page Transfers.",
)
COPY_STORAGE_AWAY: Final = code(
    "copy_storage_away",
    "Folder of a storage is not there",
    "data",
    "site",
    "Mount the storage again; copies then go on by themselves, see the page Transfers.",
)
COPY_NO_ROOM: Final = code(
    "copy_no_room",
    "Storage has no room for the files",
    "data",
    "site",
    "Free space at the storage; copies then go on by themselves, see the page Transfers.",
)
COPY_FAILS: Final = code(
    "copy_fails",
    "Copies of files fail",
    "data",
    "site",
    "Mend what the error says before the last attempt; all errors are on the page Transfers.",
)
COPY_LINK_SLOW: Final = code(
    "copy_link_slow",
    "Link copies as fast as it may",
    "capacity",
    "nobody",
    "Wait for its turn: the page Transfers shows what is ahead, and LINK_RATE of the mover how many MB/s the link gives.",
    severity="info",
)
COPY_MOVER_BUSY: Final = code(
    "copy_mover_busy",
    "Mover copies as much as it may",
    "capacity",
    "nobody",
    "Wait for its turn: the page Transfers shows what is ahead, and TURN_VOLUME of the mover how many MB it copies in one turn.",
    severity="info",
)
COPY_LINK_BUSY: Final = code(
    "copy_link_busy",
    "Link copies as many files as it may",
    "capacity",
    "nobody",
    "Wait for its turn: the page Transfers shows what is ahead, and LINK_TRANSFERS of the mover how many are copied at a time.",
    severity="info",
)
COPY_TAPE_BUSY: Final = code(
    "copy_tape_busy",
    "Tape reads as many files as it may",
    "capacity",
    "nobody",
    "Wait for its turn: the page Transfers shows what is ahead, and TAPE_DRIVES of the mover how many are read at a time.",
    severity="info",
)
JOBS_GO_FIRST: Final = code(
    "jobs_go_first",
    "Other jobs of the site go first",
    "capacity",
    "nobody",
    "Wait, or raise the priority of the task: under-used shares go first, and within a share the highest priority.",
    severity="info",
)
JOB_UNWALLED: Final = code(
    "job_unwalled",
    "Payloads are not isolated from the site's machine",
    "capacity",
    "site",
    "Install bubblewrap on the machine of the pilots and start them again, or send the task to another site.",
)
JOB_WITHOUT_CHANNEL: Final = code(
    "job_without_channel",
    "Payloads of the queue cannot take event ranges",
    "capacity",
    "site",
    "Start the project's own pilots at the queue (JEDI_PILOT unset), or send the task to another site.",
)
JOBS_AT_SHUT_STORAGE: Final = code(
    "jobs_at_shut_storage",
    "Jobs wait for a storage of their queue",
    "data",
    "site",
    "Have room made at the storage, its folder mounted again or its disk mended: the jobs are then handed out by themselves. Or "
    "reassign the task: its waiting jobs are closed, and new ones go to other sites.",
)
JOB_INPUT_AWAY: Final = code(
    "job_input_away",
    "The storage with the job's input is away",
    "data",
    "site",
    "Mount the folder of the storage again, or mend its disk; the job is handed out once it is there.",
)
JOB_STARTS: Final = code(
    "job_starts",
    "Pilot has not started the payload yet",
    "state",
    "nobody",
    "Wait: the pilot prepares input and software; without a heartbeat the job counts as lost.",
    severity="info",
)
JOB_IS_BOOKED: Final = code(
    "job_is_booked",
    "End of the job is being recorded",
    "state",
    "nobody",
    "Wait for the adder; if it takes long, see the page Agents.",
    severity="info",
)
JOB_OUTPUT_MOVES: Final = code(
    "job_output_moves",
    "Outputs are on their way",
    "data",
    "nobody",
    "Wait for the transfer of its outputs; if it takes long, see the page Transfers.",
    severity="info",
)
JOB_OUTPUT_MERGES: Final = code(
    "job_output_merges",
    "Outputs wait to be merged",
    "data",
    "nobody",
    "Wait for the merge job.",
    severity="info",
)
NO_SITE_CHOSEN: Final = code(
    "no_site_chosen",
    "No site is chosen for the job",
    "state",
    "nobody",
    "Wait for the broker; the task page shows what the sites lack.",
    severity="info",
)

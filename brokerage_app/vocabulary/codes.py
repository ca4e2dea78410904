"""The refusal codes of brokerage and throttling. Scripts read them: a code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from jedisite.refusals import Fixer, Group, Severity, register


def _code(code: str, title: str, group: Group, who: Fixer, advice: str, *, severity: Severity = "warning") -> str:
    return register(code, title, group, severity=severity, who_can_fix=who, advice=advice).code


NO_SITE_KNOWN: Final = _code(
    "no_site_known",
    "No site is known",
    "state",
    "expert",
    "Describe at least one site in the admin, or import the site descriptions.",
    severity="error",
)
SITE_OFFLINE: Final = _code(
    "site_offline",
    "Site offline",
    "state",
    "site",
    "Wait until the site is online again, or reassign the task to another site.",
)
SITE_PAUSED: Final = _code(
    "site_paused",
    "Site paused",
    "state",
    "site",
    "Wait until the site is online again, or reassign the task to another site.",
)
SITE_STANDBY: Final = _code(
    "site_standby",
    "Site stands by",
    "state",
    "shifter",
    "The site takes only work that is bound to it until it is set online; name it as the task's only site to use it.",
)
SITE_BROKEROFF: Final = _code(
    "site_brokeroff",
    "Brokerage switched off",
    "state",
    "shifter",
    "The site finishes what it has and takes nothing new; set it online, or name it as the task's only site.",
)
SITE_TEST_ONLY: Final = _code(
    "site_test_only",
    "Test jobs only",
    "state",
    "shifter",
    "The site takes jobs with the label test until it is set online.",
)

SITE_UNKNOWN: Final = _code(
    "site_unknown",
    "The task's site does not exist",
    "policy",
    "user",
    "Reassign the task to a site that exists.",
    severity="error",
)
EXCLUDED: Final = _code(
    "excluded",
    "Excluded by the task",
    "policy",
    "user",
    "Kill the task and run it again (incexec) with another excludedSite.",
)
NOT_INCLUDED: Final = _code(
    "not_included",
    "Not among the task's sites",
    "policy",
    "user",
    "Reassign the task to the site, or run it again (incexec) with another includedSite.",
)
NOT_PREASSIGNED: Final = _code(
    "not_preassigned",
    "Bound to another site",
    "policy",
    "user",
    "The work is bound to other sites, for instance to where its data or its libraries are; take that out to use this one.",
    severity="info",
)

TOO_FEW_CORES: Final = _code(
    "too_few_cores",
    "Not enough cores",
    "resources",
    "user",
    "Ask for fewer cores a job, or allow sites with larger slots.",
    severity="error",
)
MULTI_CORE_ONLY: Final = _code(
    "multi_core_only",
    "Multi-core jobs only",
    "resources",
    "user",
    "Ask for more than one core, or allow sites that take single-core jobs.",
    severity="error",
)
LOW_MEMORY: Final = _code(
    "low_memory",
    "Not enough memory at the site",
    "resources",
    "user",
    "Ask for less memory, or allow sites with more memory a slot.",
    severity="error",
)
HIGH_MEMORY: Final = _code(
    "high_memory",
    "Site is kept for jobs with more memory",
    "resources",
    "user",
    "Allow sites without a lower limit on memory.",
)
SCRATCH_DISK: Final = _code(
    "scratch_disk",
    "Not enough scratch disk",
    "resources",
    "user",
    "Make smaller jobs (fewer files, where they have several), or read the input directly.",
    severity="error",
)

SHORT_WALLTIME: Final = _code(
    "short_walltime",
    "Site's time limit is too short",
    "time",
    "user",
    "Make shorter jobs, or allow sites with a longer time limit.",
    severity="error",
)
LONG_WALLTIME: Final = _code(
    "long_walltime",
    "Site is kept for longer jobs",
    "time",
    "user",
    "Make longer jobs, or allow sites without a lower limit on time.",
)


BAD_ARCHITECTURE: Final = _code(
    "bad_architecture",
    "The architecture cannot be understood",
    "software",
    "user",
    "Mend the task's architecture as the sentence says, and submit it again.",
    severity="error",
)
NO_RELEASE: Final = _code(
    "no_release",
    "Release or cache is not installed",
    "software",
    "site",
    "Use a release or a container that more sites have, or ask the site to publish it.",
)
NO_PLATFORM: Final = _code(
    "no_platform",
    "No platform matches",
    "software",
    "user",
    "Widen the expression that stands for the software platform, or name one that the site publishes.",
)
NO_CONTAINER: Final = _code(
    "no_container",
    "Container is not available",
    "software",
    "user",
    "Use an image under a path that the site allows, or one that is published as a tag.",
)
NO_CPU: Final = _code(
    "no_cpu",
    "No such CPU",
    "software",
    "user",
    "Ask for a CPU that more sites have, or ask the site to publish its CPUs.",
)
NO_GPU: Final = _code(
    "no_gpu",
    "No such GPU",
    "software",
    "user",
    "Ask for less of the GPU (vendor, model, memory, versions), or have the site publish its GPUs: both at the queue's "
    "worker nodes and in its software tags (architectures, an entry of the type gpu).",
)
HARDWARE_RESERVED: Final = _code(
    "hardware_reserved",
    "Site is kept for other hardware requests",
    "software",
    "nobody",
    "The site takes only tasks that ask for its special hardware; nothing needs to be done.",
    severity="info",
)

QUEUE_FULL: Final = _code(
    "queue_full",
    "Enough jobs are queued already",
    "capacity",
    "nobody",
    "Wait: jobs are made as the site starts those that are queued.",
    severity="info",
)

# Candidates, before any rule is asked.
TEST_QUEUE: Final = _code(
    "test_queue",
    "Queue for tests",
    "policy",
    "nobody",
    "Queues with test in their name get no production; name the queue as the task's only site to use it.",
    severity="info",
)
OTHER_KIND: Final = _code(
    "other_kind",
    "Takes another kind of jobs",
    "policy",
    "expert",
    "The queue takes either production or analysis; set its type to unified for both.",
    severity="info",
)
OTHER_CLOUD: Final = _code(
    "other_cloud",
    "In another cloud",
    "policy",
    "user",
    "Take the cloud out of the task to let it run everywhere.",
)
PROCESSING_TYPE: Final = _code(
    "processing_type",
    "Does not take this kind of processing",
    "policy",
    "site",
    "Allow other sites, or have allowed_processing or excluded_processing of the queue changed.",
)
TAKEN_BACK: Final = _code(
    "taken_back",
    "Work was taken back from there",
    "policy",
    "nobody",
    "Jobs of this work waited too long at the queue; other queues are tried first.",
    severity="info",
)
BUILD_FAILS_THERE: Final = _code(
    "build_fails_there",
    "Sources cannot be built at the site",
    "policy",
    "site",
    "Look at the logs of the build jobs there; a retry of the task tries the site again.",
)

PILOTS_STOPPED: Final = _code(
    "pilots_stopped",
    "No pilot asks for jobs there now",
    "state",
    "site",
    "See why no pilots of the queue ask for jobs now; until they do, other queues are tried first.",
    severity="info",
)

NUCLEUS_NOT_WRITABLE: Final = _code(
    "nucleus_not_writable",
    "The nucleus takes no files",
    "network",
    "site",
    "Wait until the storage of the nucleus can be written from outside again, or choose another nucleus.",
)
LINKS_FULL: Final = _code(
    "links_full",
    "Too many files wait for the nucleus",
    "network",
    "nobody",
    "Wait: outputs are on their way to the nucleus; NQUEUED_NUC_CAP_FOR_JOBS says how many may.",
    severity="info",
)
LINK_BLOCKED: Final = _code(
    "link_blocked",
    "The link to the nucleus is blocked",
    "network",
    "expert",
    "See why the link is closed in the network's table; its closeness is -1.",
)
LINK_FULL: Final = _code(
    "link_full",
    "Too many files wait on the link",
    "network",
    "nobody",
    "Wait: outputs are on their way; NQUEUED_SAT_CAP says how many may wait on a link.",
    severity="info",
)
SLOW_NETWORK: Final = _code(
    "slow_network",
    "Network too slow for express work",
    "network",
    "nobody",
    "Tasks of priority 1000 or more use only queues with a good link; lower the priority or NW_THRESHOLD, or wait.",
    severity="info",
)
NO_CONNECTIVITY: Final = _code(
    "no_connectivity",
    "Worker nodes lack the connectivity",
    "network",
    "user",
    "Ask for less outbound connectivity, or allow sites whose worker nodes have it.",
    severity="error",
)

OPPORTUNISTIC: Final = _code(
    "opportunistic",
    "Opportunistic queue",
    "policy",
    "nobody",
    "Urgent tasks and scouts do not use queues that may take their slots back; lower the priority to use them.",
    severity="info",
)
INACTIVE: Final = _code(
    "inactive",
    "Has started nothing for hours",
    "state",
    "site",
    "See why the site starts no jobs although some wait there.",
)
NO_PILOTS: Final = _code(
    "no_pilots",
    "No pilot has called",
    "state",
    "site",
    "See why no pilots of the queue reach the server: the batch system, the factory, or the token.",
)
ZERO_SHARE: Final = _code(
    "zero_share",
    "The queue gives this kind of work no share",
    "policy",
    "site",
    "The queue's fair-share policy leaves this work out; allow other sites, or have the policy changed.",
)
JUMBO_QUEUE: Final = _code(
    "jumbo_queue",
    "Takes jumbo jobs only",
    "events",
    "nobody",
    "The queue is kept for jumbo jobs.",
    severity="info",
)
FEW_EVENTS: Final = _code(
    "few_events",
    "Too few events are ready for a jumbo job",
    "events",
    "nobody",
    "Wait until more events are ready, or let other queues have them.",
    severity="info",
)
NO_EVENT_SERVICE: Final = _code(
    "no_event_service",
    "Takes no event service",
    "events",
    "site",
    "Allow sites whose queues take event-service jobs (jobseed es, eshigh or all).",
)
EVENT_SERVICE_HIGH_ONLY: Final = _code(
    "event_service_high_only",
    "Takes urgent event service only",
    "events",
    "user",
    "Raise the priority to 900, or allow other sites.",
)
EVENT_SERVICE_NEEDS_CORES: Final = _code(
    "event_service_needs_cores",
    "Single-core slots take no event service here",
    "events",
    "nobody",
    "Event service runs in slots of several cores of this queue.",
    severity="info",
)
EVENT_SERVICE_ONLY: Final = _code(
    "event_service_only",
    "Takes event service only",
    "events",
    "nobody",
    "The queue is kept for event service.",
    severity="info",
)

DISK_IO_BUSY: Final = _code(
    "disk_io_busy",
    "The site's disks are busy",
    "resources",
    "nobody",
    "Wait until its running jobs read and write less; maxdiskio of the queue is the limit.",
    severity="info",
)
IO_INTENSITY: Final = _code(
    "io_intensity",
    "Reads too much for the site",
    "resources",
    "site",
    "Allow other sites, or have max_io_intensity of the queue raised.",
)
TOO_MANY_CORES: Final = _code(
    "too_many_cores",
    "Slots have too many cores",
    "resources",
    "user",
    "Raise maxCoreCount of the task, or allow sites with smaller slots.",
)
NO_DIRECT_ACCESS: Final = _code(
    "no_direct_access",
    "Input cannot be read directly",
    "data",
    "user",
    "Let the task copy its input, or allow sites where it is read from the storage.",
    severity="error",
)
STORAGE_FULL: Final = _code(
    "storage_full",
    "The site's storage is full",
    "data",
    "site",
    "Wait until space is freed; STORAGE_MIN_FREE_SIZE says how much must be usable: free, beyond what must stay free.",
)
INPUT_NOT_READABLE: Final = _code(
    "input_not_readable",
    "Storage cannot be read locally",
    "data",
    "site",
    "Wait until an input endpoint of the queue can be read again.",
)
OUTPUT_NOT_WRITABLE: Final = _code(
    "output_not_writable",
    "Storage cannot be written locally",
    "data",
    "site",
    "Wait until an output endpoint of the queue can be written again.",
)
STORAGE_NOT_RECEIVING: Final = _code(
    "storage_not_receiving",
    "Storage takes no files from outside",
    "data",
    "site",
    "Wait until an input endpoint of the queue can be written from outside again.",
)
STORAGE_NOT_SENDING: Final = _code(
    "storage_not_sending",
    "Storage sends no files",
    "data",
    "site",
    "Wait until an output endpoint of the queue can be read from outside again.",
)
SOURCE_NOT_SENDING: Final = _code(
    "source_not_sending",
    "No source can send the input",
    "data",
    "site",
    "Wait until a storage with the whole input can be read from outside again.",
)
TOO_MUCH_INPUT_MISSING: Final = _code(
    "too_much_input_missing",
    "Too much input is missing there",
    "data",
    "nobody",
    "Tasks that read much run near their input; SIZE_CUTOFF_TO_MOVE_INPUT and NUM_CUTOFF_TO_MOVE_INPUT limit what is moved.",
)
INPUT_NOT_LOCAL: Final = _code(
    "input_not_local",
    "Uses local input only",
    "data",
    "nobody",
    "The queue never gets input from elsewhere; replicate the input there to use it.",
    severity="info",
)
INPUT_IN_DOWNTIME: Final = _code(
    "input_in_downtime",
    "The input cannot be reached",
    "data",
    "site",
    "Wait until a storage with the whole input is up again, or replicate the input elsewhere.",
)
INPUT_INCOMPLETE: Final = _code(
    "input_incomplete",
    "The input is complete nowhere",
    "data",
    "user",
    "Replicate the input to one storage, or use a dataset whose files exist.",
    severity="error",
)

SHORT_FOR_SCOUTS: Final = _code(
    "short_for_scouts",
    "Time limit too short for first jobs",
    "time",
    "nobody",
    "Until the first jobs are measured only sites with a day or more are used.",
    severity="info",
)
SHORT_FOR_UNKNOWN: Final = _code(
    "short_for_unknown",
    "Time limit too short for work of unknown length",
    "time",
    "user",
    "State cpuTime of the task, or let scouts measure it; until then only sites with a day or more are used.",
)
TOO_MANY_TRANSFERRING: Final = _code(
    "too_many_transferring",
    "Too many outputs are being transferred",
    "capacity",
    "nobody",
    "Wait until outputs of finished jobs have left the site.",
    severity="info",
)
NON_PLEDGED: Final = _code(
    "non_pledged",
    "Unpledged queue while work is short",
    "policy",
    "expert",
    "WORK_SHORTAGE is set: pledged queues get the work first.",
    severity="info",
)
OVER_PLEDGED: Final = _code(
    "over_pledged",
    "Runs more than its pledge while work is short",
    "policy",
    "expert",
    "WORK_SHORTAGE is set: queues below their pledge get the work first.",
    severity="info",
)
OUTSIDE_NUCLEUS: Final = _code(
    "outside_nucleus",
    "Not a queue of the nucleus",
    "policy",
    "user",
    "The task asks to stay at its nucleus (t1Weight -1); take that out to use other sites.",
)
NOT_BUSIEST_OF_NUCLEUS: Final = _code(
    "not_busiest_of_nucleus",
    "Not the first choice at the nucleus",
    "policy",
    "nobody",
    "With t1Weight -1 only the queue that runs most is used.",
    severity="info",
)
OUTSIDE_FULL_CHAIN: Final = _code(
    "outside_full_chain",
    "The chain of tasks stays at its nucleus",
    "policy",
    "user",
    "Take fullChain out of the task to use other sites.",
)
FULL_CHAIN_ONLY: Final = _code(
    "full_chain_only",
    "Takes whole chains of tasks only",
    "policy",
    "nobody",
    "The queue is kept for chains of tasks that stay there.",
    severity="info",
)

# Analysis.
NO_DATA_THERE: Final = _code(
    "no_data_there",
    "The input is not there",
    "data",
    "nobody",
    "Analysis goes to its input first; replicate the input there, or wait until every queue with it is refused.",
)
FILES_NOT_THERE: Final = _code(
    "files_not_there",
    "Files of the input are missing there",
    "data",
    "nobody",
    "Only queues with all files of the input are used; replicate the rest there.",
)
VIRTUAL_STORAGE: Final = _code(
    "virtual_storage",
    "Storage is virtual",
    "data",
    "user",
    "Take avoidVP out of the task to let queues be used that fetch their input as they read it.",
    severity="info",
)
NO_OUTPUT_STORAGE: Final = _code(
    "no_output_storage",
    "No storage for outputs",
    "data",
    "site",
    "Give the queue an endpoint to which analysis jobs may write.",
)
LOCAL_QUOTA: Final = _code(
    "local_quota",
    "No quota left at the storage",
    "data",
    "user",
    "Delete datasets of yours there, or ask for a larger quota.",
)
CLOSED_THERE: Final = _code(
    "closed_there",
    "Jobs of the task were closed there",
    "state",
    "nobody",
    "Jobs waited there too long and were taken back; other queues are tried first for some hours.",
    severity="info",
)
FAILING_THERE: Final = _code(
    "failing_there",
    "Too many jobs of the task failed there",
    "state",
    "user",
    "See why the jobs fail, mend it and retry the task: failures of before count no more. Others of its queues go first "
    "for some hours.",
)
USER_QUEUE_LONG: Final = _code(
    "user_queue_long",
    "The user has enough jobs waiting there",
    "capacity",
    "nobody",
    "Wait: more jobs are made as those that wait there start.",
    severity="info",
)
OVERLOADED: Final = _code(
    "overloaded",
    "Busier than other queues",
    "capacity",
    "nobody",
    "Wait, or let it pass: queues with shorter waits are used first.",
    severity="info",
)
OVERLOADED_VIRTUAL: Final = _code(
    "overloaded_virtual",
    "Busier than other queues, and its storage is virtual",
    "capacity",
    "nobody",
    "Wait: a queue that has to fetch the input is used only while it is not busy.",
    severity="info",
)
HOSPITAL: Final = _code(
    "hospital",
    "Queue for difficult jobs",
    "policy",
    "nobody",
    "Queues whose names end in _HOSPITAL are used when no other is left.",
    severity="info",
)

LOCKED: Final = _code(
    "locked",
    "Another broker is looking at the queue",
    "capacity",
    "nobody",
    "Wait: the queue is looked at again in the next pass.",
    severity="info",
)
QUEUE_FULL_OF_TYPE: Final = _code(
    "queue_full_of_type",
    "Enough jobs of this resource type are queued",
    "capacity",
    "nobody",
    "Wait: jobs are made as the site starts those that are queued.",
    severity="info",
)
BOOTSTRAP_ELSEWHERE: Final = _code(
    "bootstrap_elsewhere",
    "First jobs go to another part of the queue",
    "weight",
    "nobody",
    "The queue is empty: one kind of its slots gets the first jobs.",
    severity="info",
)
BELOW_MIN_WEIGHT: Final = _code(
    "below_min_weight",
    "Weight below the minimum",
    "weight",
    "expert",
    "MIN_WEIGHT says what a queue must weigh to be used.",
    severity="info",
)
LOW_WEIGHT: Final = _code(
    "low_weight",
    "Others fit better",
    "weight",
    "nobody",
    "Only the best queues get jobs in one round; this one gets its turn when it is among them.",
    severity="info",
)

# The choice of a nucleus.
NO_NUCLEUS_KNOWN: Final = _code(
    "no_nucleus_known",
    "No nucleus is known",
    "state",
    "expert",
    "Give at least one site the role nucleus, or import the descriptions of sites.",
    severity="error",
)
NUCLEUS_UNKNOWN: Final = _code(
    "nucleus_unknown",
    "The task's nucleus is not known",
    "policy",
    "user",
    "Reassign the task to a nucleus that exists, or describe the site.",
    severity="error",
)
NUCLEUS_INACTIVE: Final = _code(
    "nucleus_inactive",
    "Nucleus is not active",
    "state",
    "shifter",
    "Wait until the nucleus is active again.",
)
NUCLEUS_BACKLOG: Final = _code(
    "nucleus_backlog",
    "Too many outputs are on their way to the nucleus",
    "network",
    "expert",
    "Wait until the files have arrived, or raise NQUEUED_NUC_CAP.",
)
NUCLEUS_NO_STORAGE: Final = _code(
    "nucleus_no_storage",
    "Nucleus has no storage for the outputs",
    "data",
    "user",
    "Ask for a storage token that more nuclei have, or for none.",
    severity="error",
)
NUCLEUS_READ_DOWN: Final = _code(
    "nucleus_read_down",
    "The nucleus's storage cannot be read from outside",
    "data",
    "shifter",
    "Wait until read_wan of the storage is on again.",
)
NUCLEUS_WRITE_DOWN: Final = _code(
    "nucleus_write_down",
    "The nucleus's storage cannot be written from outside",
    "data",
    "shifter",
    "Wait until write_wan of the storage is on again.",
)
NUCLEUS_SPACE: Final = _code(
    "nucleus_space",
    "Not enough space at the nucleus",
    "data",
    "expert",
    "Delete data at the nucleus, or lower DISK_THRESHOLD for the task's share.",
)
NUCLEUS_NO_QUEUE: Final = _code(
    "nucleus_no_queue",
    "No queue of the nucleus can run the jobs",
    "resources",
    "user",
    "The sentence says what each queue of the nucleus lacks: have that mended, or ask for what they have.",
)
NUCLEUS_INPUT_SIZE: Final = _code(
    "nucleus_input_size",
    "Too small a part of the input's size is at the nucleus",
    "data",
    "expert",
    "Copy the input to a nucleus, raise the task's priority, or wait: after DATA_LOCATION_CHECK_PERIOD any nucleus will do.",
)
NUCLEUS_INPUT_FILES: Final = _code(
    "nucleus_input_files",
    "Too few files of the input are at the nucleus",
    "data",
    "expert",
    "Copy the input to a nucleus, raise the task's priority, or wait: after DATA_LOCATION_CHECK_PERIOD any nucleus will do.",
)
NUCLEUS_FULL_CHAIN: Final = _code(
    "nucleus_full_chain",
    "Whole chains of tasks: nucleus and task do not fit",
    "policy",
    "user",
    "Change the task's fullChain, or the nucleus's bareNucleus.",
)

THROTTLED_NONE_RUNNING: Final = _code(
    "throttled_none_running",
    "Throttled: none runs and enough are queued",
    "throttle",
    "shifter",
    "See why no site starts jobs of this work queue; more jobs are made as queued ones start to run.",
)
THROTTLED_QUEUED: Final = _code(
    "throttled_queued",
    "Throttled: enough jobs are queued",
    "throttle",
    "nobody",
    "Wait: more jobs are made as queued ones start to run.",
    severity="info",
)
THROTTLED_DEFINED: Final = _code(
    "throttled_defined",
    "Throttled: too many jobs are defined",
    "throttle",
    "expert",
    "See what keeps defined jobs from being activated: builds, transfers of input, or data management.",
)
THROTTLED_WAITING: Final = _code(
    "throttled_waiting",
    "Throttled: too many jobs wait for input",
    "throttle",
    "expert",
    "See what keeps the inputs of waiting jobs from arriving.",
)
THROTTLED_RUNNING_CAP: Final = _code(
    "throttled_running_cap",
    "Throttled: cap on running jobs",
    "throttle",
    "expert",
    "Wait until running jobs have ended, or have the cap raised: administrators set NRUNNINGCAP of the work queue or share in "
    "the configuration, component prod_job_throttler or anal_job_throttler.",
    severity="info",
)
THROTTLED_QUEUE_CAP: Final = _code(
    "throttled_queue_cap",
    "Throttled: cap on queued jobs",
    "throttle",
    "expert",
    "Wait until pilots have started queued jobs, or have the cap raised: administrators set NQUEUECAP of the work queue or "
    "share in the configuration, component prod_job_throttler or anal_job_throttler.",
    severity="info",
)
THROTTLED_CAP_ZERO: Final = _code(
    "throttled_cap_zero",
    "Throttled: the cap is 0",
    "throttle",
    "expert",
    "Have the cap raised: administrators set NQUEUECAP and NRUNNINGCAP of the work queue or share in the configuration, "
    "component prod_job_throttler or anal_job_throttler.",
)
THROTTLED_PRIORITY: Final = _code(
    "throttled_priority",
    "Throttled: more urgent tasks go first",
    "throttle",
    "nobody",
    "Wait: jobs of other tasks are made as queued ones start to run.",
    severity="info",
)
USER_RUNNING_JOBS: Final = _code(
    "user_running_jobs",
    "Throttled: too many running jobs",
    "throttle",
    "expert",
    "Wait: more jobs are made as running ones of the user or the working group end. Administrators set the cap: "
    "CAP_RUNNING_USER_JOBS (of groups CAP_RUNNING_GROUP_JOBS) in the configuration, component prio_mgr.",
    severity="info",
)
USER_QUEUED_JOBS: Final = _code(
    "user_queued_jobs",
    "Throttled: too many queued jobs",
    "throttle",
    "expert",
    "Wait until pilots have started queued jobs of the user or the working group; if none come, have pilots started at their "
    "queues. The cap is twice CAP_RUNNING_USER_JOBS (of groups CAP_RUNNING_GROUP_JOBS), which administrators set in the "
    "configuration, component prio_mgr.",
    severity="info",
)
USER_RUNNING_CORES: Final = _code(
    "user_running_cores",
    "Throttled: too many running cores",
    "throttle",
    "expert",
    "Wait: more jobs are made as running ones of the user or the working group end. Administrators set the cap: "
    "CAP_RUNNING_USER_CORES (of groups CAP_RUNNING_GROUP_CORES) in the configuration, component prio_mgr.",
    severity="info",
)
USER_QUEUED_CORES: Final = _code(
    "user_queued_cores",
    "Throttled: too many queued cores",
    "throttle",
    "expert",
    "Wait until pilots have started queued jobs of the user or the working group; if none come, have pilots started at their "
    "queues. The cap is twice CAP_RUNNING_USER_CORES (of groups CAP_RUNNING_GROUP_CORES), which administrators set in the "
    "configuration, component prio_mgr.",
    severity="info",
)
USER_CAP_ZERO: Final = _code(
    "user_cap_zero",
    "Throttled: the cap is 0",
    "throttle",
    "expert",
    "Have the cap raised: administrators set CAP_RUNNING_USER_JOBS, CAP_RUNNING_USER_CORES and the same of groups (GROUP) in "
    "the configuration, component prio_mgr.",
)
CLASS_C_WAITS: Final = _code(
    "class_c_waits",
    "Throttled: the share is nearly used up and the task is of class C",
    "throttle",
    "nobody",
    "Wait: users who run less go first; more jobs are made as the user's own running jobs end.",
    severity="info",
)
CLASS_B_WAITS: Final = _code(
    "class_b_waits",
    "Throttled: the share is nearly used up and the task is of class B",
    "throttle",
    "nobody",
    "Wait: users who run less go first; more jobs are made as the user's own running jobs end.",
    severity="info",
)
CLASS_A_WAITS: Final = _code(
    "class_a_waits",
    "Throttled: the share is used up and the task is of class A",
    "throttle",
    "nobody",
    "Wait until the share is used less; users with very few running jobs go on.",
    severity="info",
)
OVER_QUOTA: Final = _code(
    "over_quota",
    "Disk quota exceeded",
    "throttle",
    "user",
    "Delete datasets that are not needed any more, or ask for a larger quota.",
    severity="error",
)
NEAR_QUOTA: Final = _code(
    "near_quota",
    "Close to the disk quota",
    "throttle",
    "user",
    "Only merging goes on: delete datasets that are not needed any more, or ask for a larger quota.",
)
QUOTA_UNKNOWN: Final = _code(
    "quota_unknown",
    "Disk quota could not be checked",
    "throttle",
    "expert",
    "See whether data management answers; the task is tried again by itself.",
)
GENERATION_OFF: Final = _code(
    "generation_off",
    "Throttled: the making of jobs is switched off",
    "throttle",
    "expert",
    "Wait until JOB_SUBMISSION is set to true again for the organisation.",
)

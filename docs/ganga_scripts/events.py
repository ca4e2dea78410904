from tasks_app.gpi.ganga import *

import time

j = Job(name="events", comment="ranges of events, merged by a module of our own")
j.application = Executable(exe="sh", args=["-c", "echo $FIRST_EVENT $NUM_EVENTS > range.txt"])
j.splitter = GaussSplitter(eventsPerJob=200, numberOfJobs=4, firstEventNumber=1000)
j.outputfiles = [LocalFile("range.txt")]
with open("last.py", "w") as module:
    module.write("import shutil\n\ndef mergefiles(files, output):\n    return bool(shutil.copy(files[-1], output))\n")
j.merger = CustomMerger(files=["range.txt"], module="last.py")
j.backend = Local()
j.submit()

while j.status not in ("completed", "failed", "killed"):
    time.sleep(0.2)
print(j.status, (j.outputdir / "range.txt").read_text().strip())

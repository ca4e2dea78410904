from tasks_app.gpi.ganga import *

import os
import sys
import time

late = os.path.join(sys.argv[1], "late.txt")
present = os.path.join(sys.argv[1], "present.txt")
open(present, "w").close()

j = Job(name="again")
j.application = Executable(exe="ls")
j.splitter = GenericSplitter()
j.splitter.attribute = "application.args"
j.splitter.values = [[present], [late], [late]]
j.backend = Local()
j.submit(keep_going=True)

while j.status not in ("completed", "failed", "killed"):
    time.sleep(0.2)
print(j.status, [s.id for s in j.subjobs.select(status="failed")])

open(late, "w").close()
for s in j.subjobs.select(status="failed"):
    s.resubmit()
while j.status not in ("completed", "failed", "killed"):
    time.sleep(0.2)
print(j.status, jobs((j.id, 1)).status, jobs(f"{j.id}.2").status)

from tasks_app.gpi.ganga import *

import time

j = Job(name="arguments")
j.application = Executable(exe="echo")
j.splitter = ArgSplitter(args=[["red"], ["green"], ["blue"]])
j.postprocessors = TextMerger(files=["stdout"])
j.backend = Local()
j.submit()

while j.status not in ("completed", "failed", "killed"):
    time.sleep(0.2)
print(j.status, len(j.subjobs))
j.peek("stdout")

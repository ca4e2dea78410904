from tasks_app.gpi.ganga import *

import json
import time


def square(number, power=2):
    return number**power


j = Job(name="squares")
j.application = PythonFunction(square)
j.splitter = GenericSplitter(attribute="application.args", values=[[2], [3], [4]])
j.outputfiles = [LocalFile("result.json")]
j.backend = Local()
j.submit()

while j.status not in ("completed", "failed", "killed"):
    time.sleep(0.2)
print(j.status, [json.loads((s.outputdir / "result.json").read_text()) for s in j.subjobs])

one = j.subjobs(1).copy()
one.name = "cubes"
one.application.kwargs = {"power": 3}
one.submit()
while one.status not in ("completed", "failed", "killed"):
    time.sleep(0.2)
print(one.parent, one.status, json.loads((one.outputdir / "result.json").read_text()))
print(jobs.select(name="*squares*", status="completed").ids() == [j.id])
one.remove()

from tasks_app.gpi.ganga import *

import time

with open("count.sh", "w") as script:
    script.write("#!/bin/sh\ncat $(cat __GangaInputData.txt__) | wc -l > counts.txt\n")

j = Job(name="files")
j.application = Executable(exe="sh", args=[File("count.sh")])
j.inputdata = GangaDataset(files=[LocalFile("lines.*.txt")])
j.splitter = GangaDatasetSplitter()
j.splitter.files_per_subjob = 2
j.outputfiles = [LocalFile("counts.txt")]
j.postprocessors.append(TextMerger(files=["counts.txt"]))
j.backend = Local()
j.submit()

while j.status not in ("completed", "failed", "killed"):
    time.sleep(0.2)
print(j.status, [len(s.inputdata.files) for s in j.subjobs])
print((j.outputdir / "counts.txt").read_text())

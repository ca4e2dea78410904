"""Submitted dictionaries of the usual kinds of task, to start tests from."""

from __future__ import annotations

from typing import Any

Params = dict[str, Any]


def log(dataset: str = "test.log.t1", name: str = "log.t1._${SN}.log.tgz") -> Params:
    return {"type": "template", "param_type": "log", "dataset": dataset, "value": name}


def constant(value: str, **more: Any) -> Params:
    return {"type": "constant", "value": value, **more}


def template(param_type: str, value: str, dataset: str | None = None, **more: Any) -> Params:
    item: Params = {"type": "template", "param_type": param_type, "value": value, **more}
    return item if dataset is None else {**item, "dataset": dataset}


def generation(**changes: Any) -> Params:
    """Event generation: no input, 20 jobs of 500 events."""
    return {
        "taskName": "mc.700001.generate.v2",
        "userName": "prodmaster",
        "vo": "lab",
        "prodSourceLabel": "managed",
        "taskType": "prod",
        "processingType": "evgen",
        "workingGroup": "GP_TOY",
        "taskPriority": 600,
        "architecture": "x86_64-el9-gcc13-opt",
        "transUses": "Toy-1.2",
        "transHome": "ToyGen-1.2.3",
        "transPath": "toy_gen",
        "cloud": "WORLD",
        "coreCount": 1,
        "cpuTime": 900,
        "cpuTimeUnit": "HS06sPerEvent",
        "ramCount": 1500,
        "ramUnit": "MBPerCore",
        "outDiskCount": 80,
        "outDiskUnit": "kBPerEvent",
        "noInput": True,
        "nEvents": 10_000,
        "nEventsPerJob": 500,
        "log": {**log("mc.log.g1", "log.700001._${SN}.job.log.tgz"), "token": "dst:NUCLEUS_A"},
        "jobParameters": [
            constant("--energy=13000 --process=700001"),
            template("number", "--firstEvent=${FIRSTEVENT}", offset=0),
            template("number", "--maxEvents=${MAXEVENTS}"),
            template("number", "--seed=${RNDMSEED}", offset=200),
            template("output", "--out=EVNT.700001._${SN}.root", "mc.EVNT.g1", token="dst:NUCLEUS_A"),
        ],
        **changes,
    }


def reconstruction(**changes: Any) -> Params:
    """Files in, files out, with a secondary dataset and internal merging."""
    return {
        "taskName": "data.reconstruct.v7",
        "userName": "prodmaster",
        "vo": "lab",
        "prodSourceLabel": "managed",
        "taskType": "prod",
        "processingType": "reco",
        "taskPriority": 450,
        "architecture": "x86_64-el9-gcc13-opt",
        "transUses": "Toy-2.0",
        "transHome": "ToyReco-2.0.1",
        "transPath": "toy_reco",
        "coreCount": 8,
        "ramCount": 2000,
        "ramUnit": "MBPerCore",
        "nFilesPerJob": 3,
        "maxAttempt": 5,
        "log": {**log("data.log.r1", "log.r1._${SN}.log.tgz"), "token": "DATADISK"},
        "jobParameters": [
            template("input", "--in=${IN}", "data.HITS.h1"),
            template("input", "--pileup=${MB}", "minbias.HITS.h2", ratio=4, attributes="repeat"),
            template("output", "--out=AOD.r1._${SN}.root", "data.AOD.r1", token="DATADISK"),
        ],
        "mergeOutput": True,
        "nGBPerMergeJob": 4,
        "mergeSpec": {
            "transPath": "toy_merge",
            "jobParameters": "--in=${TRN_OUTPUT0} --out=${OUTPUT0} --logs=${TRN_LOG0}",
        },
        **changes,
    }


def analysis(**changes: Any) -> Params:
    """What prun sends for a job with a build step, a container as input and a sequence number."""
    out = "user.mia.$JEDITASKID._${SN/P}.hist.root"
    return {
        "taskName": "user.mia.plots.v1/",
        "uniqueTaskName": True,
        "vo": "atlas",
        "architecture": None,
        "transUses": "",
        "transHome": None,
        "processingType": "panda-client-2.2.0-jedi-run",
        "prodSourceLabel": "user",
        "site": None,
        "excludedSite": [],
        "includedSite": None,
        "nFilesPerJob": 5,
        "nEventsPerFile": 100,
        "cliParams": 'prun --exec "run.sh %IN" --outDS user.mia.plots.v1',
        "osInfo": "Linux-6.1-x86_64-with-glibc2.36",
        "nMaxFilesPerJob": 200,
        "ramCount": 2000,
        "ramCountUnit": "MBPerCore",
        "respectSplitRule": True,
        "sourceURL": "https://cache.example:443",
        "disableAutoRetry": 1,
        "useLocalIO": 1,
        "log": {
            "dataset": "user.mia.plots.v1.log/",
            "container": "user.mia.plots.v1.log/",
            "type": "template",
            "param_type": "log",
            "value": "user.mia.plots.v1.log.$JEDITASKID.${SN}.log.tgz",
        },
        "jobParameters": [
            constant('-j "" --sourceURL ${SURL}'),
            constant("-r ."),
            constant("__delimiter__", hidden=True),
            constant("-l ${LIB}"),
            template("output", out, "user.mia.plots.v1_hist/", container="user.mia.plots.v1_hist/", hidden=True),
            constant(f"-o \"{{'hist.root': '{out}'}}\""),
            template("input", '-i "${IN/T}"', "data.DAOD.d1/", expand=True, exclude=r"\.log\.tgz(\.\d+)*$"),
            constant('-p "', padding=False),
            constant("run.sh%20%25IN", padding=False),
            template("pseudo_input", "${SEQNUMBER}", "seq_number", offset=7, padding=False),
            constant('"'),
            template("input", "${S}", "user.mia.extra", expand=True, nFilesPerJob=2, hidden=True),
            constant("--inMap \"{'IN': ${IN/T}, 'S': ${S/T}}\""),
            # pathena repeats a stream inside a constant, with the keys of a template.
            {
                "type": "constant",
                "value": "${IN/E}",
                "param_type": "input",
                "dataset": "data.DAOD.d1",
                "padding": False,
            },
        ],
        "dsForIN": "data.DAOD.d1/",
        "reuseSecOnDemand": True,
        "buildSpec": {
            "prodSourceLabel": "panda",
            "archiveName": "sources.77.tar.gz",
            "jobParameters": "-i ${IN} -o ${OUT} --sourceURL ${SURL} -r . ",
        },
        **changes,
    }


def event_service(**changes: Any) -> Params:
    return {
        "taskName": "mc.simulate.es.v1",
        "vo": "lab",
        "prodSourceLabel": "managed",
        "taskType": "prod",
        "processingType": "simul",
        "taskPriority": 300,
        "architecture": {"sw_platform": "x86_64-el9-gcc13-opt", "cpu_specs": [{"arch": "x86_64"}]},
        "coreCount": 0,
        "nFilesPerJob": 1,
        "nEventsPerInputFile": 500,
        "nEventsPerWorker": 1,
        "nEsConsumers": 2,
        "nSitesPerJob": 1,
        "maxAttemptES": 4,
        "maxAttemptEsJob": 2,
        "objectStore": "root^os.example^/es",
        "mergeEsOnOS": True,
        "notDiscardEvents": True,
        "inFilePosEvtNum": True,
        "registerEsFiles": True,
        "esmergeSpec": {"transPath": "toy_hits_merge", "jobParameters": "--in=${IN} --out=${OUT}"},
        "log": [log("mc.log.s1", "log.s1._${SN}.tgz")],
        "jobParameters": [
            template("input", "--in=${IN}", "mc.EVNT.s0"),
            constant("--eventService", es_only=True),
            template("number", "--maxEvents=${MAXEVENTS}"),
            template("number", "--skipEvents=${SKIPEVENTS}"),
            template("output", "--out=HITS.s1._${SN}.root", "mc.HITS.s1"),
        ],
        **changes,
    }


def smallest(**changes: Any) -> Params:
    """The least that is accepted."""
    return {
        "taskName": "t",
        "prodSourceLabel": "user",
        "noInput": True,
        "nEvents": 2,
        "nEventsPerJob": 1,
        "jobParameters": [constant("echo")],
        **changes,
    }


ALL = (generation, reconstruction, analysis, event_service, smallest)

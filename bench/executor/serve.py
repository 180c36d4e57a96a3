"""The side of a measured process: it opens models and times runs of them when asked to. It needs nothing but Python.

Questions and answers are JSON, one on a line:

* ``{"open": SIDE, …}`` makes a model ready and runs it once, to warm it up; the answer is the ``wall`` and ``cpu`` time of that.
* ``{"run": SIDE, "count": N}`` runs it N times; the answer is the ``wall`` and ``cpu`` time of one run.
* ``{"close": true}`` forgets all models.

Times are in seconds. Where something goes wrong the answer is ``failed``, a sentence.
"""

import gc
import json
import os
import sys
import time


def serve(open_side, facts):
    """Answer questions until there are no more.

    Args:
        open_side: Called with the question that opens a model; returns what runs the model once.
        facts: The first answer, unasked.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _answer(answers, facts)
    runs = {}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "open" in question:
                runs[question["open"]] = open_side(question)
                answer = _timed(runs[question["open"]], 1)
            elif "run" in question:
                answer = _timed(runs[question["run"]], question["count"])
            else:
                runs.clear()
                gc.collect()
                answer = {}
        except Exception as error:  # noqa: BLE001 - whatever an executor raises, the other side says it
            answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
        _answer(answers, answer)


def _timed(run, count):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        run()
    return {"wall": (time.perf_counter() - wall) / count, "cpu": (time.process_time() - cpu) / count}


def _answer(file, content):
    file.write(json.dumps(content) + "\n")
    file.flush()

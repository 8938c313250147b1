"""Children that do what an item says, good and bad: for tests of what becomes of jobs. Run as a script in a child."""

import os
import pickle
import signal
import sys
import time
from pathlib import Path

COMMAND = [sys.executable, str(Path(__file__).resolve())]


def act(item):
    match item:
        case "hang":
            time.sleep(600)
        case "abort":
            sys.stderr.write("LLVM ERROR: out of patience\n")
            sys.stderr.flush()
            os.abort()
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "exit":
            os._exit(3)
        case "babble":
            return b"\x80\x05garbage"
    return {"kind": "measured", "detail": item}


def main():
    answers = os.fdopen(os.dup(1), "wb")
    job = pickle.load(sys.stdin.buffer)
    if job.get("start") != "fine":
        act(job["start"])
    pickle.dump({"ready": True}, answers)
    answers.flush()
    for item in job["items"]:
        answer = act(item)
        if isinstance(answer, bytes):
            answers.write(answer)
        else:
            pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()

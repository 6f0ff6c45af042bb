# SPDX-License-Identifier: Apache-2.0
"""What the scripts of other programs' clients share: named checks, the trace that they replay, and a run of the program."""
import json
import os
import subprocess
import sys

failures = []


def check(name, holds, note=""):
    """Prints a check for tests/end2end/serve_load_clients.sh. `note` is shown if it does not hold."""
    print(f"{'ok' if holds else 'not ok'} {name}{'' if holds else f': {note}'}")
    if not holds:
        failures.append(name)


def finish():
    sys.exit(bool(failures))


def read_trace(file):
    """Lines of {"timestamp": seconds, "input_length": tokens, "output_length": tokens}; without a file (None), five requests."""
    if not file:
        return [(0.0, 64, 16), (0.4, 32, 8), (0.9, 96, 24), (1.0, 32, 16), (1.8, 64, 8)]
    with open(file, encoding="ascii") as lines:
        return [tuple(json.loads(line)[k] for k in ("timestamp", "input_length", "output_length")) for line in lines]


def program(name):
    """The program of the virtual environment that runs this script."""
    return os.path.join(os.path.dirname(sys.executable), name)


def run(name, words, file, **env):
    """Runs a client and returns the JSON that it writes to `file`. If it fails, a check named after `name` fails, and the script ends."""
    done = subprocess.run(words, env=os.environ | env, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode or not os.path.exists(file):
        check(f"{name}: it ends well", False, done.returncode)
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
        finish()
    with open(file, encoding="utf-8") as result:
        return json.load(result)

# SPDX-License-Identifier: Apache-2.0
"""Two programs that train on one GPU in turns: assay train, stopped (SIGSTOP) between two of its steps, and peer_train_gpu.py, which waits
for its next order. Who waits is idle but keeps its memory and its context, where both fit."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Ended(Exception):
    """A program ended, or said nothing for too long."""


class Device:
    """Memory in use on the card, as the driver tells it ten times a second; of several cards the first that CUDA may see."""

    def __init__(self):
        card = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
        words = ["nvidia-smi", "-i", card, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "100"]
        self.now = self.highest = 0
        try:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        except FileNotFoundError:
            self.process = None
            return
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.now = int(line) << 20
                self.highest = max(self.highest, self.now)

    def take(self):
        """The most since the last look, which begins another."""
        highest, self.highest = self.highest, 0
        return highest

    def end(self):
        if self.process:
            self.process.terminate()


def family(pid):
    """A process and all below it, itself first."""
    children = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as f:
                children.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
        except (OSError, ValueError, IndexError):
            continue
    found = [pid]
    for p in found:
        found += children.get(p, [])
    return found


class Ours:
    """assay train, timed from outside by when the lines of its steps arrive."""

    def __init__(self, words, folder, limit=120):
        self.begun, self.limit, self.lines, self.steps, self.stopped, self.over = time.monotonic(), limit, [], [], False, False
        self.errors, self.came = [], threading.Condition()
        self.process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for what in (self.listen, self.hear):
            threading.Thread(target=what, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            at = time.monotonic()
            if not line.startswith("{"):
                continue
            said = json.loads(line)
            with self.came:
                if said["type"] == "step":
                    self.steps.append((at, said))
                else:
                    self.lines.append(said)
                self.came.notify_all()
        with self.came:
            self.over = True
            self.came.notify_all()

    def hear(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def signal(self, number):
        for pid in family(self.process.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def until(self, count):
        """The step of that number, from 1 on: its arrival and its line."""
        with self.came:
            if not self.came.wait_for(lambda: len(self.steps) >= count or self.over, self.limit) or len(self.steps) < count:
                raise Ended(f"assay train: {len(self.steps)} steps, then {'its end' if self.over else 'silence'}: {''.join(self.errors)[-600:]}")
            return self.steps[count - 1]

    def hold(self):
        """What the card was given before the stop takes it one more step at most."""
        self.signal(signal.SIGSTOP)
        self.stopped = True
        time.sleep(0.1 + min(self.steps[-1][1]["step_s"], 2))

    def turn(self, warm, steps, seconds=0.0):
        """At least so many steps and so long, behind WARM that do not count: of them the first may have begun before the stop."""
        if self.stopped:
            self.signal(signal.SIGCONT)
            self.stopped = False
        first = len(self.steps) + warm  # no other step comes before this reads it: it was stopped, or has just begun
        begun, end = self.until(first)[0], first + steps
        while self.until(end)[0] - begun < seconds:
            end += 1
        self.hold()
        counted = [x for _, x in self.steps[first:end]]
        took, tokens = self.steps[end - 1][0] - begun, sum(x["tokens"] for x in counted)
        return {"steps": len(counted), "tokens": tokens, "seconds": took, "tokens_per_s": tokens / took,
                "own_tokens_per_s": tokens / sum(x["step_s"] for x in counted), "step_s": [x["step_s"] for x in counted],
                "apart_s": [self.steps[i][0] - self.steps[i - 1][0] for i in range(first, end)],  # as lines came
                "loss_first": self.steps[first - warm][1]["loss"], "loss": counted[-1]["loss"]}

    def told(self, kind):
        return next((x for x in self.lines if x.get("type") == kind), None)

    def end(self):
        """Nobody wants what it trained: it is asked twice, which ends it at once."""
        self.signal(signal.SIGCONT)
        for _ in range(2):
            self.process.terminate()
            time.sleep(0.2)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.process.wait()


class Peer:
    """peer_train_gpu.py over one model."""

    def __init__(self, model, files, folder):
        self.begun = time.monotonic()
        words = [sys.executable, os.path.join(HERE, "peer_train_gpu.py"), "--turns", model, *files]
        env = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", **os.environ}  # batches of many shapes leave no holes then
        self.process = subprocess.Popen(words, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = None

    def answer(self, kind):
        for line in self.process.stdout:
            if line.startswith(f'{{"{kind}"'):
                return json.loads(line)[kind]
        raise Ended(f"peer_train_gpu.py ended, exit code {self.process.wait()}")

    def order(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        if not self.about:
            self.about = self.answer("about")
        return self.answer("turn")

    def turn(self, work, packing, warm, steps):
        return self.order(work=work, packing=packing, warm=warm, steps=steps)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

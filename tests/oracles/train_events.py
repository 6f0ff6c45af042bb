#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard (PyPI: tensorboard) reads of the events of a training run.

usage: train_events.py DIR [trainer_state.json]     prints a line a scalar: tag step value; exits 1 where a record cannot be read, or a
loss is not what the run itself logged
"""
import glob
import json
import struct
import sys

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

read, losses = 0, {}
for path in sorted(glob.glob(sys.argv[1] + "/events.out.tfevents.*")):
    for event in EventFileLoader(path).Load():
        for value in event.summary.value:
            # TensorBoard's loader turns simple values into tensors.
            number = value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value
            print(value.tag, event.step, f"{number:.9g}")
            read += 1
            losses[value.tag, event.step] = number
if len(sys.argv) > 2:
    with open(sys.argv[2]) as f:
        history = json.load(f)["log_history"]
    for entry in history:
        for key, tag in (("loss", "train/loss"), ("eval_loss", "eval/loss")):
            if key in entry:
                single = struct.unpack("f", struct.pack("f", entry[key]))[0]
                assert losses.pop((tag, entry["step"])) == single, (tag, entry)
    assert not [tag for tag, _ in losses if tag.endswith("/loss")], "events of losses that the run did not log"
    print("ok - every loss is the run's own")
sys.exit(0 if read else 1)

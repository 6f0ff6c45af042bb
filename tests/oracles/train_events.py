#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard (PyPI: tensorboard) reads of the events of a training run.

usage: train_events.py DIR     prints a line a scalar: tag step value; exits 1 where a record cannot be read
"""
import glob
import sys

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

read = 0
for path in sorted(glob.glob(sys.argv[1] + "/events.out.tfevents.*")):
    for event in EventFileLoader(path).Load():
        for value in event.summary.value:
            # TensorBoard's loader turns simple values into tensors.
            number = value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value
            print(value.tag, event.step, f"{number:.9g}")
            read += 1
sys.exit(0 if read else 1)

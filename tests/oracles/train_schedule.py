#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learning rates of transformers and PyTorch, which tests/unit/train_schedule.c holds ours against.

usage: train_schedule.py > tests/data/train/schedules.txt
A line a schedule: its settings as train/config's rows have them, a colon, the rate of each step.
"""
import torch
from torch.optim.lr_scheduler import OneCycleLR
from transformers import optimization as hf

PEAK = 2e-4


def rates(make, steps):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=PEAK)
    scheduler = make(optimizer)
    out = []
    for _ in range(steps):
        out.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return out


def line(settings, make, steps):
    words = " ".join(f"{k}={v}" for k, v in settings.items())
    print(f"{words} steps={steps}:", " ".join(repr(x) for x in rates(make, steps)))


for n, w in ((10, 0), (10, 3), (7, 7), (1, 0), (100, 10)):
    line({"lr_scheduler_type": "constant", "warmup_steps": 0}, hf.get_constant_schedule, n)
    line({"lr_scheduler_type": "constant_with_warmup", "warmup_steps": w},
         lambda o: hf.get_constant_schedule_with_warmup(o, w), n)
    line({"lr_scheduler_type": "linear", "warmup_steps": w},
         lambda o: hf.get_linear_schedule_with_warmup(o, w, n), n)
    line({"lr_scheduler_type": "cosine", "warmup_steps": w},
         lambda o: hf.get_cosine_schedule_with_warmup(o, w, n), n)
    line({"lr_scheduler_type": "cosine", "warmup_steps": w, "min_lr_ratio": 0.1},
         lambda o: hf.get_cosine_with_min_lr_schedule_with_warmup(o, w, n, min_lr_rate=0.1), n)
for n, w, d, kind, low in ((10, 0, 3, "linear", 0), (10, 2, 4, "cosine", 0.1), (20, 5, 15, "1-sqrt", 0),
                           (12, 3, 5, "linear", 0.25)):
    line({"lr_scheduler_type": "wsd", "warmup_steps": w, "num_decay_steps": d, "decay_type": kind, "min_lr_ratio": low},
         lambda o: hf.get_wsd_schedule(o, w, d, num_training_steps=n, decay_type=kind, min_lr_ratio=low), n)
for n, start, div, final in ((10, 0.3, 25, 1e4), (100, 0.3, 25, 1e4), (33, 0.1, 10, 100), (7, 0.5, 4, 2)):
    line({"lr_scheduler_type": "onecycle", "pct_start": start, "div_factor": div, "final_div_factor": final},
         lambda o: OneCycleLR(o, PEAK, total_steps=n, pct_start=start, div_factor=div, final_div_factor=final,
                              cycle_momentum=False), n)

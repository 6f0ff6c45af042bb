#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The targets of a build that its tests need, without those of some suites. Meson's own target of this kind has all suites.

usage: targets.py [--default] FOLDER SUITE..
    --default   and the targets that are built by default
    SUITE       left out, with every test that has it
"""
import json
import os
import sys

arguments = sys.argv[1:]
default = arguments[0] == "--default"
folder, *left_out = arguments[default:]


def told(kind):
    with open(os.path.join(folder, "meson-info", f"intro-{kind}.json"), encoding="utf-8") as file:
        return json.load(file)


def runs(test):
    return not {suite.split(":")[-1] for suite in test["suite"]} & set(left_out)


needed = {target for test in told("tests") if runs(test) for target in test["depends"]}
for target in told("targets"):
    if target["id"] in needed or (default and target["build_by_default"]):
        for file in target["filename"]:
            print(os.path.relpath(file, folder))

#!/bin/sh
# What `kernel_cases time FILTER` times is what the filter names: nothing of other groups, whose times take minutes.
# usage: filter.sh KERNEL_CASES TAP (ASSAY_LIB_CUDA: the fake driver)
set -u
cases=$(realpath "$1")
. "$(realpath "$2")"
said=$("$cases" time --small nothing_has_this_name)
case $said in 1..0*) echo "$said"; exit 0 ;; esac # built without kernels
scratch
timed() { "$cases" time --small --gib 0.01 "$1" 2>&1; }
said=$(timed copy_v4)
ok "what is named by its version is timed" eval 'echo "$said" | grep -q "^time memory driver copy"'
ok "and nothing else" [ -z "$(echo "$said" | grep -vE '^(NVIDIA|ok|skip|7 cases|time memory)')" ]
said=$(timed empty)
ok "what is named by its entry is timed" eval 'echo "$said" | grep -q "^time clock empty launch"'
ok "and nothing else" [ -z "$(echo "$said" | grep -vE '^(NVIDIA|ok|skip|2 cases|time clock)')" ]
said=$(timed nothing_has_this_name)
ok "of what nothing is named nothing is timed" [ "$(echo "$said" | grep -vc '^NVIDIA')" = 1 ]
finish

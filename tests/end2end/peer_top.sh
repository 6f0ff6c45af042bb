#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The comparison of GPU monitors, with four fake GPUs: `assay top` beside itself. Calls of NVML are counted, and their CPU time is taken apart from the
# program's own. usage: peer_top.sh ROOT ASSAY NVML-FAKE NVML-PROXY
set -u
root=$(realpath "$1") assay=$(realpath "$2") nvml=$(realpath "$3") proxy=$(realpath "$4")
. "$root/tests/end2end/tap.sh"
command -v python3 > /dev/null || { echo "1..0 # SKIP there is no python3"; exit 0; }
scratch
export PYTHONDONTWRITEBYTECODE=1 ASSAY_LIB_CUDA=/nowhere/libcuda.so.1 FAKE_NVML_FILE="$root/tests/fake/h100x4.json"
peers() { # FOLDER ARGS..
	folder=$1
	shift
	python3 "$root/tests/oracles/peer_top.py" --out "$folder" --nvml "$nvml" --proxy "$proxy" "$@" > out 2> err
}
figure() { # PROGRAM WINDOW KEY: of the idle GPUs
	python3 -c 'import json, sys; print(json.load(open("a/peers.json"))["phases"]["idle"][sys.argv[1]][sys.argv[2]][sys.argv[3]])' "$@"
}
between() { awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v >= a && v <= b) }'; }

# 4 x 10 ms of each refresh are the driver's.
export FAKE_NVML_BUSY=utilization=10
ok "programs are measured" peers a --seconds 4 --any-window --settle 2 --hold 1 "assay='$assay' top" "twin='$assay' top" "none=echo no GPU here"
unset FAKE_NVML_BUSY
ok "refreshes are counted by a call that each GPU gets" [ "$(figure assay timed counted_by)" = nvmlDeviceGetUtilizationRates ]
for of in untimed timed; do
	ok "calls of NVML are counted, $of" between "$(figure assay $of calls)" 30 200
	ok "equal programs make equally many, $of" eval 'between "$(figure twin $of calls)" "$(figure assay $of calls | awk "{ print 0.6 * \$1 }")" "$(figure assay $of calls | awk "{ print 1.6 * \$1 }")"'
done
ok "CPU time of a busy driver is told as the driver's" between "$(figure assay timed driver_ms)" 39 60
ok ".. and not as the program's own" between "$(figure assay timed own_ms)" 0.1 30
ok "the untimed total has both" between "$(figure assay untimed total_ms)" 39 90
ok "the screen is kept" says 'H100 80GB HBM3' a/assay.idle.screen
ok "the two are compared" says "assay's own time is [0-9.]* times twin's" a/peers.txt
ok "a program without a screen is absent, with its words" says 'none *not measured: no GPU here' a/peers.txt
ok "a process that cannot hold memory is told" says '^  not measured: .*libcuda' a/peers.txt
ok "nothing else is left" [ -z "$(ls a | grep -v 'screen$\|^peers')" ]
ok "windows that split a period of slow rows are refused" eval '! peers b --seconds 20 "assay=$assay top" && says "20 is no multiple of 30" err'
nvml=/nowhere
ok "without NVML nothing is measured" eval '! peers c "assay=$assay top" && says "^peer_top: /nowhere: " err'
finish

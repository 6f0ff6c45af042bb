#!/bin/sh
# `assay info`: what is recorded shows as it was; the summary leaves CUDA alone and is quick; wrong words are refused.
# usage: info.sh ASSAY NVML-FAKE CUDA-TRAP
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") trap_lib=$(realpath "$3")
tmp=$(mktemp -d) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
unset CUDA_VISIBLE_DEVICES ASSAY_LIB_CUDA
export ASSAY_LIB_NVML="$nvml"

# The same parser: what was printed while it was recorded and what its recording prints differ in `live` alone.
ok "it records and shows" expect 0 info all --json --record real --real-names
mv out live.json
ok "the recording shows" expect 0 info all --json --machine real
sed 's/^  "live": false,$/  "live": true,/' out > replay.json
ok "byte for byte as it was" cmp live.json replay.json
ok "with a GPU in it" grep -q '"nvml_index": 0' live.json
ok "under pseudonyms too it shows" expect 0 info all --json --record hidden
mv out named.json
expect 0 info all --json --machine hidden
serial=$(sed -n 's/^ *"serial": "\(.*\)",*$/\1/p' named.json | head -n 1)
ok "what was shown has the serial" [ -n "$serial" ]
ok "what was written has not" sh -c '! grep -rq "$1" hidden' sh "$serial"
ok "each section shows" sh -c 'for s in summary cpu memory gpu links fabric storage software; do "$1" info $s > text && [ -s text ] || exit 1; done' sh "$assay"

# A libcuda that aborts when it is initialised.
export FAKE_TOUCHED="$tmp/touched" ASSAY_LIB_CUDA="$trap_lib"
ok "the summary shows the GPU" expect 0 info summary
ok "with its name" says "NVIDIA H100" out
ok "and no libcuda was touched" [ ! -e touched ]
ok "info gpu asks CUDA" expect 0 info gpu
ok "which was initialised" says cuInit touched
ok "and cost its facts alone" says "multiprocessors  *?, compute capability 9.0" out
unset FAKE_TOUCHED ASSAY_LIB_CUDA

# 100 ms are the target on a quiet machine; the CPU time of ten runs holds on a loaded one too.
times > before
for _ in 1 2 3 4 5 6 7 8 9 10; do "$assay" info summary > /dev/null; done
times > after
spent() { tail -n 1 "$1" | awk '{ t = 0; for (i = 1; i <= 2; i++) { split($i, p, /[ms]/); t += 60 * p[1] + p[2] } print int(1000 * t) }'; }
ms=$((($(spent after) - $(spent before)) / 10))
limit=100
if objdump -T "$assay" 2> /dev/null | grep -q __asan_init; then limit=1000; fi
echo "# a summary takes $ms ms of CPU time"
ok "the summary is quick" [ "$ms" -le "$limit" ]

ok "a recording is not recorded again" expect 64 info --record again --machine real
ok "nor written over another" expect 64 info --record real
ok "no recording is none" expect 64 info --machine nowhere
ok "nothing goes where nothing may be" expect 2 info --record /proc/nowhere
finish

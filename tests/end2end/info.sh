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
all_libraries
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

# Ranks that were launched: two nodes by name, of which the second has a fake GPU and the first none.
rank() { # RANK NODE WORDS..
	r=$1 node=$2
	shift 2
	ASSAY_SIZE=2 ASSAY_HOST=127.0.0.1 ASSAY_JOB=info-$$ ASSAY_TEAM_SECRET=0123456789abcdef ASSAY_RANK=$r SLURMD_NODENAME=$node "$assay" "$@"
}
both() { # CODE, what rank 1 does, WORDS..: of rank 0
	want=$1 other=$2
	shift 2
	# shellcheck disable=SC2086
	ASSAY_LIB_NVML=$nvml rank 1 node-b $other > other.out 2> other.err &
	ASSAY_LIB_NVML=$tmp/none rank 0 node-a "$@" > out 2> err
	code=$?
	wait $! && [ $code = "$want" ]
}
mkdir temporary
export TMPDIR="$tmp/temporary"
ok "a team of two nodes" both 0 info info
ok ".. each a row" sh -c 'grep -Eq "^ +node-a +whole +rank 0 .* none" out && grep -Eq "^ +node-b +whole +rank 1 .*1 x NVIDIA H100" out'
ok ".. what differs flagged" grep -Eq '^ *! +how many: GPU +0 \(1 node\) +1: node-b +the team waits for the node with the fewest' out
ok ".. which rank it was is no difference" sh -c '! grep -E "variable: .*(ASSAY_RANK|SLURMD_NODENAME)" out'
ok ".. told by rank 0 alone" [ ! -s other.out ]
ok "named by the command line" both 0 "info --node right" info --node left
ok ".. as a run's are" sh -c 'grep -Eq "^ +left +whole" out && grep -Eq "^ +right +whole" out'
ok "nobody comes: as long as is asked" both 2 "list" info --join 300ms
ok ".. and who is missing is named" says 'within 0.3 s' err
ok "as JSON, with each node's facts" both 0 info info --json
ok ".. and the same differences" sh -c 'tr -d " \n" < out | grep -q "\"name\":\"node-b\".*\"gpus\":1,\"facts\":{.*\"name\":\"NVIDIAH100.*\"differences\":.*{\"fact\":\"gpus\",\"most\":\"0\""'
ok "a part for each node" both 0 "info cpu" info cpu
ok ".. by name" sh -c 'grep -A1 -x "== node-a ==" out | grep -qx CPU && grep -A1 -x "== node-b ==" out | grep -qx CPU'
ok "a rank that brings nothing" both 2 "__team --cases 0" info
ok ".. its node is shown missing" grep -Eq '^ *! +node-b +missing: rank 1: its journal was not received' out
ok "asked for alone it waits for nobody" sh -c 'ASSAY_SIZE=2 ASSAY_RANK=1 ASSAY_HOST=127.0.0.1 timeout 20 "$0" info --alone > out && grep -q "^Machine" out' "$assay"
ok "nothing is left behind" [ -z "$(ls temporary)" ]
unset TMPDIR
ok "a recording is not recorded again" expect 64 info --record again --machine real
ok "nor written over another" expect 64 info --record real
ok "no recording is none" expect 64 info --machine nowhere
ok "the disk for results is that of --out" expect 0 info storage --json --out later/results
ok ".. also if it is not there yet" sh -c 'tr -d " \n" < out | grep -q "\"role\":\"output\",\"path\":\"$(pwd)/later/results\""'
ok ".. but not in a recording" expect 64 info --out here --machine real
ok "nothing goes where nothing may be" expect 2 info --record /proc/nowhere
finish

#!/bin/sh
# tools/check-gpu-watch on two CPU cores with four GPUs that are not there: what it records, shows and counts. usage: check_gpu_watch.sh ASSAY
# NVML-FAKE ROOT; with CHECK_SCREENS=yes the screens and the first frame too, which take 20 s more
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3")
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
. "$root/tests/end2end/ports.sh"
scratch
"$assay" make-model --shape tiny --seed 1 --out model > out 2> err || { cat err; exit 1; }
if ! "$assay" tokens model x > out 2> err && grep -q 'built without' err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi
ports 610
export ASSAY="$assay" ASSAY_LIB_NVML="$nvml" FAKE_NVML_FILE="$root/tests/fake/h100x4.json" DEVICE=cpu SHAPE=tiny SERVE_MEMORY=64MiB
export WATCH_SECONDS=2 FIRST_ROUNDS=2 PORT=$((port + 1)) EXPORTER_PORT=$((port + 2)) HOME="$tmp"
check() { "$root/tools/check-gpu-watch" "$@" > out 2> err; }

pin=
if command -v taskset > /dev/null; then pin='taskset -c 0'; fi # it trains all the time, on one core here
ok "a machine at work is recorded, and its pages are read" sh -c '$1 "$2" a record pages > out 2> err' - "$pin" "$root/tools/check-gpu-watch"
ok "readings are lines with its GPUs" sh -c '[ "$(wc -l < a/watch.jsonl)" = 2 ] && grep -q gpu a/watch.jsonl'
ok ".. and the recording is shown again" sh -c '"$ASSAY" top --replay a/watch.rec --once > out && grep -q "/700W" out'
ok "a training run and a server were there" sh -c 'grep -q "\"source\":\"train" a/runs/train/journal.jsonl && grep -q "^record: 2 readings" a/steps.txt'
ok "pages have the run and the check" sh -c 'cp a/metrics.txt out; grep -q "^assay_run_[a-z_]*{[^}]*kind=\"train\"" a/metrics.txt && grep -q "^assay_check_verdict{suite=\"health\"" a/metrics.txt'
ok ".. and the metrics that no page has are named" sh -c '[ -s a/missing.txt ] && ! grep -qx assay_gpu_power_watts a/missing.txt && grep -q "^pages: [0-9]* of [0-9]* metrics" a/steps.txt'
ok "nothing runs any more" sh -c '! pgrep -f "$PWD/a/" > /dev/null'
ok "no model is left" [ ! -e a/model ]
if [ "${CHECK_SCREENS:-no}" = yes ] && command -v tmux > /dev/null && command -v script > /dev/null; then
	export FIRST_LIMIT=3000 # this machine is busy
	ok "its screens are taken, and the first frame is timed" check c screens first
	ok ".. of the machine" says 'H100' c/screen-machine.txt
	ok ".. of a graph" sh -c '! cmp -s c/screen-machine.txt c/screen-graph.txt && [ -s c/screen-graph.ansi ]'
	ok ".. twice" [ "$(grep -c '^[1-9][0-9]* [1-9]' c/first.txt)" = 2 ]
fi
if command -v script > /dev/null; then
	printf '#!/bin/sh\nexec sleep 60\n' > blank && chmod +x blank
	ok "a top that never paints fails" sh -c '! ASSAY=$PWD/blank FIRST_ROUNDS=1 "$1" i first > out 2> err' - "$root/tools/check-gpu-watch"
	ok ".. and no time is invented" sh -c 'cp i/steps.txt out; grep -q "^first: no first paint within 3 s in 1 of 1 starts" out && ! grep -q " after " out'
	printf '#!/bin/sh\nprintf "%%600s 300 W\\n" x\nexec sleep 60\n' > painted && chmod +x painted
	ok "a first paint within the limit passes" sh -c 'ASSAY=$PWD/painted FIRST_ROUNDS=1 FIRST_LIMIT=3000 "$1" j first > out 2> err && grep -q "^first: first paint after .*, within 3000 ms" out' - \
		"$root/tools/check-gpu-watch"
	ok ".. and one above it fails" sh -c '! ASSAY=$PWD/painted FIRST_ROUNDS=1 FIRST_LIMIT=0.001 "$1" j first > out 2> err && grep -q "^first: first paint after .*, above 0.001 ms" out' - \
		"$root/tools/check-gpu-watch"
	printf '#!/bin/sh\nprintf "%%600s\\n" x\nexec sleep 60\n' > empty && chmod +x empty
	ok "a top without values fails" sh -c '! ASSAY=$PWD/empty FIRST_ROUNDS=1 FIRST_LIMIT=3000 "$1" k first > out 2> err && grep -q "^first: no values of the first GPU within 3 s in 1 of 1" out' - \
		"$root/tools/check-gpu-watch"
fi
if command -v python3 > /dev/null && [ -e "$(dirname "$assay")/../tests/nvml_proxy/libnvml_proxy.so" ]; then
	mkdir peers
	printf '#!/bin/sh\nexec "%s" top\n' "$assay" > peers/nvtop && chmod +x peers/nvtop
	ok "top is compared with other monitors that are found" sh -c 'PATH=$PWD/peers:$PATH PEER_SECONDS=2 PEER_HOLD=0 PEER_OPTIONS="--any-window --settle 2" "$1" h peers > out 2> err' - \
		"$root/tools/check-gpu-watch"
	ok ".. which is told" says "^peers: assay's own time is [0-9.]* times nvtop's" h/steps.txt
fi
ok "without a second GPU there is no copy to compare" sh -c '"$1" e nvlink > out && grep -q "skipped: one GPU" out' - "$root/tools/check-gpu-watch"
DEVICE=none
ok "work that does not start is told" sh -c '! "$1" f record > out 2>&1 && grep -q "^work: " out' - "$root/tools/check-gpu-watch"
ok "an unknown step is refused" sh -c '"$1" g nothing > out 2>&1; [ $? = 64 ] && grep -q "no step nothing" out' - "$root/tools/check-gpu-watch"
finish

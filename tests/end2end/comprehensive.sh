#!/bin/sh
# assay comprehensive: a whole run on the CPU and on GPUs that are not there, stages that fail, crash, hang or are skipped, stops, and
# everything that is refused. A stand-in of assay does the stages whose time or verdict depends on the machine.
# usage: comprehensive.sh ASSAY FAKES ROOT
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # the CPU, where there is a GPU too
"$assay" make-model --out tiny > out 2> err || lacks "no model can be made: $(cat err)"
"$assay" tokens tiny x > out 2> err || {
	grep -q 'built without tokenizers' err || cat err
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
}

# The stand-in: a file how.STAGE is shell code that runs instead; its $dir is the run directory.
cat > stand << 'END'
#!/bin/sh
dir=. before=
for word; do
	[ "$before" = --out ] && dir=$word
	before=$word
done
stage=$1
case $stage in check) stage=${2#comprehensive-} ;; esac
echo "$stage" >> "$HERE/ran"
plan=no
for word; do [ "$word" = --plan ] && plan=yes; done
if [ "$1" = check ] && [ $plan = yes ]; then
	echo '{"seconds_expected": 3}'
	exit 0
fi
[ -e "$HERE/how.$stage" ] && . "$HERE/how.$stage"
results() { # HEADLINE: as a suite leaves them
	printf '{"headline": "%s", "cases": [{"probe": "%s", "target": "%s", "title": "a case", "verdict": "pass", "figure": {"unit": "%s", "value": %s}}]}\n' \
		"$1" "$2" "$3" "$4" "$5" > "$dir/results.json"
	echo '<!doctype html><title>report</title>' > "$dir/report.html"
}
case $stage in
devices) results 'pass: all well' gemm cpu FLOP/s 2e11 ;;
links) results 'pass: all well' p2p gpu0\>gpu1 B/s 3.5e11 ;;
stress) results 'pass: all well' stress cpu FLOP/s 1e11 ;;
load) # the server is a real one
	echo '<!doctype html><title>report</title>' > "$dir/report.html"
	values='{"requests": 9, "answered": 9, "ttft_p50_s": 0.05, "completed_rate": 0.25, "output_tokens_per_s": 4.5}'
	printf '{"headline": "measured: 9 of 9 requests answered", "cases": [{"probe": "load", "phases": [{"phase": "idle", "values": {}}, {"phase": "once", "values": %s}]}]}\n' \
		"$values" > "$dir/results.json"
	rm -f "$HERE/serve.out" # of the run before
	"$ASSAY" serve "$3" --port 0 --device cpu --out "$dir/serve" --no-telemetry > "$HERE/serve.out" 2> "$HERE/serve.err" &
	until grep -q 'run directory' "$HERE/serve.out" || ! kill -0 $! 2> /dev/null; do sleep 0.05; done
	kill -TERM $!
	wait $! ;;
make-model) exec "$ASSAY" make-model --shape tiny --out "$5" ;;
*) exec "$ASSAY" "$@" ;;
esac
END
chmod +x stand
HERE=$PWD ASSAY=$assay
export HERE ASSAY
run() { # CODE DIR ARGS..: a run with the stand-in
	want=$1 dir=$2
	shift 2
	rm -f ran
	ASSAY_TEST_STAGES=$PWD/stand "$assay" comprehensive --out "$dir" "$@" > out 2> err
	code=$?
	[ "$code" = "$want" ] || { echo "exit code $code"; return 1; }
}
of() { # DIR STAGE MEMBER: of a stage in summary.json, one member a line
	sed -n "/\"stage\": $2,/,/^  }/p" "$1/summary.json" | sed -n "s/^   \"$3\": \"\\{0,1\\}\\(.*[^,\"]\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p" | head -n 1
}
is() { # DIR STAGE VERDICT [REASON]
	[ "$(of "$1" "$2" verdict)" = "$3" ] || { of "$1" "$2" verdict; of "$1" "$2" reason; return 1; }
	[ -z "${4:-}" ] || of "$1" "$2" reason | grep -q -- "$4" || { of "$1" "$2" reason; return 1; }
}
links_exist() { # DIR: every page that index.html names
	sed -n 's/.*href="\([^"#]*\)".*/\1/p' "$1/index.html" | grep . > names && while read -r name; do [ -e "$1/$name" ] || { echo "$name"; return 1; }; done < names
}

# -- a whole run without a GPU --
ok "a run in which all is well passes" run 0 all --model tiny
for stage in 1 2 4 5 8; do ok "stage $stage passed" is all $stage passed; done
ok "links need a GPU" is all 3 skipped "no usable GPU"
ok "so does NVLink" is all 10 skipped "no usable GPU"
ok "experts are not built yet" is all 6 skipped "not built yet: .*experts"
ok "a model of 40B parameters needs a GPU" is all 7 skipped "no usable GPU"
ok "the summary is one page with a row per stage" [ "$(grep -c '^| [0-9]* |' all/SUMMARY.md)" = 10 ]
ok "and says what a CPU cannot do" says "Not possible here: no usable GPU" all/SUMMARY.md
ok "and is what is printed" cmp -s out all/SUMMARY.md
ok "headlines have figures" says "FP32 GEMM of the CPUs 200 GFLOPS" all/SUMMARY.md
ok "memory in use stands beside the plan" says '"used, weights"' all/summary.json
ok "precisions are compared" says '"perplexity, fp8-cache"' all/summary.json
ok "every page of the index exists" links_exist all
ok "stages without a report have a page" says "Stage 5: Accuracy" all/stage-5-accuracy/stage.html
ok "commands are kept" says '"command": "assay eval tiny --data all/stage-5-accuracy/text.txt' all/summary.json
ok "a given model stays" [ -e tiny/config.json ]
dated=all-$(date +%Y-%m-%d).tar.zst
if grep -q 'no archive' err; then
	ok "without the module there is no archive, and the run says so" says "libassay-archive" err
else
	ok "the archive has a date and is whole" expect 0 archive --check "$dated"
	ok "with the journal of the server" sh -c 'zstd -dc "$0" | tar t | grep -q stage-2-load/serve/journal' "$dated"
	ok "the folder can be packed again" expect 0 archive all --out again.tar.zst
fi

# -- what goes wrong in the middle --
echo "results() { :; }; mkdir -p \$dir; echo '{\"headline\": \"fail: 2 of 3 limits missed\"}' > \$dir/results.json; exit 1" > how.load
ok "a failed stage fails the run" run 1 failed --model tiny --no-archive
ok "with the command's own words" is failed 2 failed "^2 of 3 limits missed"
ok "later stages run all the same" is failed 8 passed
ok "without an archive if none is wanted" [ ! -e "failed-$(date +%Y-%m-%d).tar.zst" ]
ok "memory without a record is inconclusive" is failed 4 inconclusive "left no record of its memory"
rm how.load
echo 'kill -SEGV $$' > how.stress
ok "a crash of a core stage is inconclusive" run 2 crashed --model tiny --no-archive --only stress
ok "and is told" is crashed 8 inconclusive "signal 11"
ok "other stages are not asked for" is crashed 1 "not run" "not asked for"
echo 'exit 0' > how.stress
ok "nothing left behind is no success" run 2 nothing --no-archive --only 8
ok "and is told too" is nothing 8 inconclusive "no results.json"
echo 'echo no JSON; exit 64' > how.eval
ok "an inconclusive optional stage does not change the exit code" run 0 optional --model tiny --no-archive --only accuracy
ok "but is told" is optional 5 inconclusive "exit code 64"
rm how.stress how.eval
echo 'echo no space left >&2; exit 2' > how.make-model
ok "without a model the run goes on" run 2 modelless --no-archive
ok "and says why" is modelless 2 inconclusive "^no model: .*exit code 2"
ok "stages without a model run" is modelless 8 passed
ok "messages of a child are kept" says "no space left" modelless/stage-0-model/messages.txt
rm how.make-model

# -- selection, and the model of its own --
ok "a stage brings those that it needs" run 0 needs --only memory --no-archive
ok "here the load" is needs 2 passed
ok "nothing else ran" sh -c '! grep -v "^make-model\|^load\|^serve" ran'
ok "the model is gone afterwards" [ ! -e needs/model ]
ok "unless it is to be kept" eval 'run 0 kept --only accuracy --no-archive --keep-model && [ -e kept/model/config.json ]'

# -- a real suite: its verdict depends on the machine, and the stage has the same one --
"$assay" comprehensive --only stress --stress 0.1 --no-archive --out real > out 2> err
code=$?
want=$(sed -n 's/^ *"exit_code": *\([0-9]\),*$/\1/p' real/stage-8-stress/results.json | head -n 1)
[ -n "$want" ] || want=$(grep -o '"exit_code": *[0-9]' real/stage-8-stress/results.json | grep -o '[0-9]$')
ok "a real stage has its suite's verdict" [ "$code" = "$want" ]
ok "and its report" says 'href="stage-8-stress/report.html"' real/index.html

# -- a real load test: its verdict depends on the machine; the server's words, its record and the archive do not --
"$assay" comprehensive --only load,memory --model tiny --rate 4 --duration 1 --input 32 --output 4 --no-archive --out loaded > out 2> err
ok "a real load test starts the server with all of its words" says '"--device","cpu"' loaded/stage-2-load/serve/journal.jsonl
ok "its figures stand in the summary" says '"requests due in the window"' loaded/summary.json
ok "and the server's memory" is loaded 4 passed

# -- a plan --
ok "a plan is printed" expect 0 comprehensive --plan --model tiny --out planned
ok "with the commands" says "assay load --model tiny .*--rate 0.25 --duration 120s" out
ok "and the expected time of each stage and of all" eval 'says "about [0-9]* s in all" out && says "^ 8  stress .*about [0-9]* s" out'
ok "and reasons" says "^ 6  moe .*skipped: not built yet" out
ok "and does nothing" [ ! -e planned ]
ok "a quick plan is shorter" eval 'expect 0 comprehensive --plan --quick --model tiny && says "--duration 30s" out'
ok "amounts can be given" eval 'expect 0 comprehensive --plan --model tiny --rate 3 --duration 5 --input 8 --output 4 && says "--rate 3 --duration 5s --input 8 --output 4 --grace 5s" out'

# -- stops --
wait_for() { for _ in $(seq 600); do [ -e "$1" ] && return 0; sleep 0.05; done; return 1; }
echo 'trap "echo > $HERE/asked; exit 2" TERM; echo > $HERE/begun; while :; do sleep 0.05; done' > how.load
ASSAY_TEST_STAGES=$PWD/stand "$assay" comprehensive --model tiny --no-archive --out stopped > out 2> err &
pid=$!
wait_for begun
kill -INT $pid
wait $pid
ok "a stopped run is inconclusive" [ $? = 2 ]
ok "the stage was asked to end" [ -e asked ]
ok "and is inconclusive" is stopped 2 inconclusive "stopped before its end"
ok "stages before it are kept" is stopped 1 passed
ok "the rest did not run" is stopped 8 "not run" "stopped before it began"
ok "the summary is written" says "^| 8 | Stress | not run" stopped/SUMMARY.md
rm -f begun
echo 'trap "" TERM; echo > $HERE/begun; while :; do sleep 0.05; done' > how.load
ASSAY_TEST_STAGES=$PWD/stand "$assay" comprehensive --model tiny --no-archive --out twice > out 2> err &
pid=$!
wait_for begun
kill -INT $pid
sleep 0.2
kill -INT $pid
wait $pid
ok "a second stop ends a stage that does not end itself" [ $? = 2 ]
ok "and the summary is written again" says "^| 2 | .*inconclusive" twice/SUMMARY.md
rm how.load

# -- four GPUs that are not there --
all_libraries
export LD_LIBRARY_PATH="$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FAKE_NVML_FILE="$root/tests/fake/h100x4.json" FAKE_CUDA=devices=4 FAKE_NVML_RATE=data_tx=1000000,data_rx=1000000
unset CUDA_VISIBLE_DEVICES
ok "GPUs have the load of the source" eval 'expect 0 comprehensive --plan && says "shape qwen2-7b" out && says "--device gpu.*--rate 100 --duration 120s --input uniform:64,2048 --output 128" out'
ok "and links" says "^ 3  links .*about" out
ok "the memory is planned for the GPU" says "serve .*--device gpu --memory [0-9]* --plan" out
# the stress lasts until the links were read twice
echo 'for _ in $(seq 600); do [ "$(cat "$dir/../stage-10-nvlink/output.txt" 2> /dev/null | wc -l)" -lt 2 ] || break; sleep 0.05; done' > how.stress
ok "links are watched during the stress" run 0 linked --only nvlink,links --no-archive
ok "their traffic is told" is linked 10 passed
ok "with figures" says "a GPU sent up to .* link errors in" linked/SUMMARY.md
ok "the stage of links has its range" says "pair of GPUs 350 GB/s" linked/SUMMARY.md
FAKE_NVML_RATE=data_tx=1000000,data_rx=1000000,error_crc=1000
ok "errors of links fail" run 1 erring --only nvlink --no-archive
ok "and are told" is erring 10 failed "link errors"
rm how.stress

# -- what is refused --
ok "an unknown stage has a suggestion" eval 'expect 64 comprehensive --only lood && says "there is no stage \"lood\", did you mean \"load\"" err'
ok "a number beyond the last one too" expect 64 comprehensive --only 11
ok "an empty list" expect 64 comprehensive --only ,
ok "a model that does not exist" eval 'expect 64 comprehensive --model nowhere && says "--model nowhere: there is no such" err'
ok "data that does not exist" expect 64 comprehensive --data nowhere
ok "a folder in use" eval 'expect 64 comprehensive --out tiny && says "not an empty folder" err'
ok "a negative rate" expect 64 comprehensive --rate -1
ok "a plan as JSON" expect 64 comprehensive --plan --json
ok "an unknown option" expect 64 comprehensive --fast
ok "check names the command" eval 'expect 64 check comprehensive && says "assay comprehensive" err'
ok "and leaves no folder" [ ! -e assay-runs ]
finish

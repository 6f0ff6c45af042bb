#!/bin/sh
# The run directory of `assay serve`: journal, request log and report, with an engine that is killed; and what is refused.
# usage: serve_record.sh ASSAY ROOT [FAKES]
set -u
assay=$(realpath "$1") root=$(realpath "$2") fakes=$(realpath "${3:-$2}")
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP there is no curl"; exit 0; }
scratch
pid=
typing=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2> /dev/null; [ -z "$typing" ] || pkill -KILL -P "$typing"; rm -rf "$tmp"' EXIT
export CUDA_VISIBLE_DEVICES=
expect 0 make-model --shape tiny-llama --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi

ok "a plan writes no run directory" expect 64 serve model --plan --out run
ok "and says so" says 'leave out --out' err
ok "an empty --out is refused" expect 64 serve model --out ''
ok "a model that is not there" eval '! expect 0 serve none --out run'
ok "leaves nothing behind" [ ! -e run ]

start() { # OPTION..: the server's URL in $url once it is ready
	: > shown # what the one before said is not this one's
	"$assay" serve model --chat-template qwen2.5 --context 256 --device cpu --port 0 "$@" > shown 2> said < /dev/null &
	pid=$!
	for _ in $(seq 600); do
		url=$(sed -n 's/^API and chat page: //p' shown)
		[ -z "$url" ] || return 0
		kill -0 $pid 2> /dev/null || return 1
		sleep 0.1
	done
	return 1
}
ready() {
	for _ in $(seq 600); do ! curl -sf "$url/ready" > /dev/null || return 0; sleep 0.1; done
	return 1
}
ask() { curl -s "$url/v1/completions" -H 'Content-Type: application/json' -d "{\"prompt\": \"secret words\", \"max_tokens\": ${1:-5}}"; }
stop() {
	kill $pid
	wait $pid
	code=$?
	pid=
	[ $code = 0 ]
}
engine() { for p in /proc/[0-9]*; do ! tr '\0' ' ' 2> /dev/null < "$p/cmdline" | grep -q ' __engine' || [ "$(sed 's/.*) . \([0-9]*\) .*/\1/' "$p/stat" 2> /dev/null)" != "$pid" ] || echo "${p#/proc/}"; done; }

ok "a server starts" start --out run
ok "it answers" eval 'ask | grep -q text_completion'
ok "and refuses" eval 'ask -1 | grep -q max_tokens'
first=$(engine)
kill -KILL $first
for _ in $(seq 600); do second=$(engine); [ -z "$second" ] || [ "$second" = "$first" ] || break; sleep 0.1; done
ok "the killed engine starts again" ready
ok "it answers again" eval 'ask | grep -q text_completion'
ok "TERM ends it" stop
ok "not on a terminal, there is no live line" eval '! grep -q "tokens/s" said'
ok "the journal is closed" says '"type":"close","ending":"done"' run/journal.jsonl
ok "it has each engine, and the end" eval 'for phase in load serve "load 2" "serve 2" drain once; do says "\"phase\":\"$phase\"" run/journal.jsonl || exit 1; done'
ok "the cause of the engine's end" says '"engine_end":"signal 9' run/journal.jsonl
ok "and readings of the engine" says '"source":"serve".*"tokens":{' run/journal.jsonl
ok "a report" expect 0 report run
ok "counts the starts" eval 'grep -qE "^engine_starts +2 " out'
ok "the requests by their ends" eval 'grep -qE "^requests +3 " out && grep -qE "^answered +2 " out && grep -qE "^refused +1 " out'
ok "and has the medians of the times, but no percentiles of two answers" eval 'grep -qE "^ttft_p50_s " out && grep -qE "^e2e_p50_s " out && ! grep -qE "_p9[59]_s " out'
ok "nothing holds what was asked" eval '! grep -rq "secret words" run'
ok "planned memory beside used, of each component" eval 'says "Memory of the engine" out && grep -qE "^frozen parameters and tables +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB" out'
ok "of the cache what was in use" grep -qE 'pages in use +[0-9.]+ [KM]iB +[1-9][0-9.]* [KM]iB' out
ok "and the process" grep -qE 'resident memory of the process +– +[1-9][0-9.]* [MG]iB' out
ok "REPORT.md has the same" says 'time to first token, median' run/REPORT.md
ok "the directory is not used twice" eval '! expect 0 serve model --out run'
ok "which the message says" says 'already holds a run' err

ok "a server with a log elsewhere" start --out other --request-log log.jsonl --log-requests
ok "it answers too" eval 'ask | grep -q text_completion'
if command -v script > /dev/null 2>&1 && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
	line='running [0-9]* waiting [0-9]* | [0-9]* tokens/s | cache [0-9]* %'
	# A GPU that is not there, for its power.
	[ ! -e "$fakes/libnvidia-ml.so.1" ] || line="$line | 69 W" ASSAY_LIB_NVML=$fakes/libnvidia-ml.so.1 FAKE_NVML_FILE=$root/tests/fake/h100.json
	[ -z "${ASSAY_LIB_NVML:-}" ] || { export ASSAY_LIB_NVML FAKE_NVML_FILE FAKE_NVML_XID=79@0 && unset CUDA_VISIBLE_DEVICES; }
	script -qec "exec '$assay' serve model --chat-template qwen2.5 --context 256 --device cpu --port 0 --out typed_run" /dev/null > typed 2>&1 < /dev/null &
	typing=$!
	for _ in $(seq 600); do ! grep -q "$line" typed || break; sleep 0.1; done
	unset ASSAY_LIB_NVML FAKE_NVML_FILE FAKE_NVML_XID
	export CUDA_VISIBLE_DEVICES=
	cp typed out
	ok "on a terminal there is a live line" says 'running 0 waiting 0 | 0 tokens/s | cache 0 %' out
	case $line in
	*W) ok "with the power of the GPU" says 'cache 0 % | 69 W' out ;;
	*) echo "# this build has no fake NVML: the power is not tested" ;;
	esac
	pkill -TERM -P $typing
	wait $typing
	typing=
	cp typed out
	case $line in *W) ok "its Xid is in the journal" says '"xid":{[^}]*\[79\]' typed_run/journal.jsonl ;; esac
	ok "which is gone from the last lines" eval 'tail -n 3 typed | grep -q "report: .*typed_run"'
else
	echo "# script cannot make a terminal here: the live line is not tested"
fi
rm -rf other
ok "without its directory it goes on" eval 'ask | grep -q text_completion'
ok "and ends" stop
ok "the log has the contents that were asked for" [ "$(grep -c 'secret words' log.jsonl)" = 2 ]
finish

#!/bin/bash
# assay serve for half an hour: 16 clients, each of which waits for an answer in 90 % of its time. Chats, streams, schemas,
# several choices, log probabilities, and clients that leave. No answer is an error, and after the first third of the time the memory of
# both processes stays. usage: serve_soak.sh ASSAY ROOT [SECONDS [MODEL [DEVICE [RATE]]]]
# DEVICE: cpu (default) or gpu; the memory of the GPU stays, too. RATE: `assay load` adds so many requests per second of SOAK_INPUT (1000) and
# SOAK_OUTPUT (250) tokens, because 16 clients do not fill a GPU.
set -u
assay=$(realpath "$1") root=$(realpath "$2") seconds=${3:-1800} device=${5:-cpu} rate=${6:-} clients=16
input=${SOAK_INPUT:-1000} output=${SOAK_OUTPUT:-250}
model=${4:+$(realpath "$4")}
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
server= workers= load=
trap 'for p in $workers $load $server; do kill "$p" 2> /dev/null; done; rm -rf "$tmp"' EXIT
if [ -z "$model" ]; then
	"$assay" make-model --shape tiny --seed 3 --out tiny > out 2> err || { cat err; exit 1; }
	model=tiny
fi
sequences=$clients more=
[ -z "$rate" ] || sequences=256 more=--no-prefix-cache # the load's prompts have nothing in common
"$assay" serve "$model" --served-model-name m --chat-template qwen2.5 --device "$device" --port 0 --context $((input + output > 1024 ? input + output : 1024)) \
	--max-sequences $sequences $more --request-log log > serve.out 2> serve.err < /dev/null &
server=$!
for _ in $(seq 600); do grep -q '^API' serve.out && break; sleep 0.1; done
if grep -q 'built without' serve.err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi
url=$(sed -n 's/^API and chat page: //p' serve.out)
ok "it starts" [ "$url" ]
[ "$url" ] || { cat serve.err; finish; }
front=$(pgrep -P $server -f __front) engine=$(pgrep -P $server -f __engine)
memory() { awk '/VmRSS/ { print $2 }' "/proc/$1/status"; }
gpu_memory() { # KiB of the GPU in use
	[ "$device" != gpu ] || nvidia-smi --id="${CUDA_VISIBLE_DEVICES:-0}" --query-gpu=memory.used --format=csv,noheader,nounits | awk '{ print $1 * 1024 }'
}
metric() { curl -s "$url/metrics" | sed -n "s/^$1{.*} //p"; }

schema='{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"type":"boolean"}},
	"required":["a","b"],"additionalProperties":false}}}'
# request KIND WORD TOKENS: path and body
request() {
	message="\"messages\":[{\"role\":\"system\",\"content\":\"You are a helpful assistant who answers in short sentences.\"},{\"role\":\"user\",\"content\":\"$2\"}]"
	case $1 in
	0) echo "/v1/chat/completions {$message,\"max_tokens\":$3}" ;;
	1 | 5) echo "/v1/chat/completions {$message,\"max_tokens\":$3,\"stream\":true,\"ignore_eos\":true}" ;;
	2) echo "/v1/chat/completions {$message,\"max_tokens\":$3,\"response_format\":$(echo "$schema" | tr -d '\n\t')}" ;;
	3) echo "/v1/completions {\"prompt\":\"$2\",\"max_tokens\":$3,\"n\":2,\"temperature\":0.7,\"top_p\":0.9,\"presence_penalty\":0.5}" ;;
	*) echo "/v1/completions {\"prompt\":\"$2\",\"max_tokens\":$3,\"echo\":true,\"logprobs\":2}" ;;
	esac
}
# is_error FILE: an error object is the answer, or an event of the stream. A model of random weights may say "error".
is_error() { grep -qE '^(data: *)?\{"error":' "$1"; }
# One client until the end of the time. Its requests and their errors are counted in files.
client() {
	RANDOM=$1
	local good=0 left=0 bad=0 kind line code begin end
	while [ "$(date +%s)" -lt "$until" ]; do
		kind=$((RANDOM % 6))
		line=$(request $kind "word $((RANDOM % 50)) $((RANDOM % 50))" $((1 + RANDOM % 700)))
		begin=$(date +%s%N)
		if [ $kind = 5 ]; then # it leaves
			curl -sN -o /dev/null --max-time 0.0$((1 + RANDOM % 9)) "$url${line%% *}" -d "${line#* }"
			left=$((left + 1))
		else
			code=$(curl -sN -o "body.$1" -w '%{http_code}' --max-time 120 "$url${line%% *}" -d "${line#* }")
			if [ "$code" = 200 ] && ! is_error "body.$1"; then
				good=$((good + 1))
			else
				bad=$((bad + 1))
				{ echo "$code $line"; head -c 300 "body.$1"; echo; } >> errors
			fi
		fi
		end=$(date +%s%N)
		sleep "$(awk "BEGIN { print ($end - $begin) / 9e9 }")"
	done
	echo "$good $left $bad" > "count.$1"
}
curl -s -o out "$url/v1/completions" -d '{}'
ok "an error is known by its form" is_error out
until=$(($(date +%s) + seconds))
: > errors
for i in $(seq $clients); do client "$i" & workers="$workers $!"; done
if [ "$rate" ]; then
	"$assay" load "$url" --rate "$rate" --input "$input" --output "$output" --endpoint completions --tokenizer "$model" --no-recount --no-telemetry --idle 0 \
		--warmup 1 --duration $((seconds > 10 ? seconds - 8 : 2)) --out load --json > load.json 2> load.err < /dev/null &
	load=$!
fi
: > samples
step=$(((seconds + 29) / 30))
while [ "$(date +%s)" -lt "$until" ]; do
	sleep $step
	echo "$(memory "$front") $(memory "$engine") $(gpu_memory)" >> samples
done
wait $workers
workers=
if [ "$rate" ]; then
	wait $load
	code=$?
	load=
	cp load.err out
	echo "# load: exit code $code, $(tr -d ' \n' < load.json | grep -oE '"(offered_rate|completed_rate|failed|requests)":[{}"a-z:]*[0-9.e+-]+' | tr -d '{"' | tr '\n' ' ')"
	# 2: the client was late itself, on cores that it shares
	ok "the load is answered" sh -c '[ "$1" = 0 ] || [ "$1" = 2 ] && grep -q "\"failed\": 0\.0" load.json' - $code
fi
read -r good left bad < <(awk '{ g += $1; l += $2; b += $3 } END { print g, l, b }' count.*)
echo "# $good answers, $left clients that left, $bad errors; engine busy for $(metric assay_engine_busy_seconds_total) of $seconds s"
echo "# memory in KiB, front end, engine and perhaps GPU: $(sed -n "$(($(wc -l < samples) / 3 + 1))p" samples) after a third, $(tail -1 samples) at the end"
ok "answers" [ "$good" -gt $((seconds / 4)) ]
cp errors out
ok "none of them is an error" [ "$bad" = 0 ]
# stays COLUMN: the last third's largest value beside the middle third's
stays() {
	awk -v c="$1" '{ v[NR] = $c } END { for (i = int(NR / 3) + 1; i <= NR; i++) { if (i <= NR * 2 / 3) { if (v[i] > a) a = v[i] } else if (v[i] > b) b = v[i] }
		exit !(b <= a * 1.03 + 2048) }' samples
}
cp samples out
ok "the front end's memory stays" stays 1
ok "the engine's memory stays" stays 2
if [ "$device" = gpu ]; then
	ok "the GPU's memory is known" awk '!($3 > 0) { bad = 1 } END { exit bad }' samples
	ok ".. and stays" stays 3
fi
ok "neither process was replaced" [ "$(pgrep -P $server -f __front) $(pgrep -P $server -f __engine)" = "$front $engine" ]
idle() { for _ in $(seq 100); do [ "$(metric assay_requests_running)$(metric assay_requests_waiting)" = 00 ] && return 0; sleep 0.1; done; return 1; }
ok "nothing runs or waits at the end" idle
cp serve.err out
ok "no warning was printed" sh -c "! grep -q 'warning\|error' serve.err"
kill $server
wait $server
ok "it ends well" [ $? = 0 ]
server=
finish

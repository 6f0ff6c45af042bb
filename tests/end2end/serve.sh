#!/bin/sh
# assay serve with its real engine on the CPU and a tiny model: requests, bad options, and everything that can happen to the
# three processes, the port and the disk. usage: serve.sh ASSAY
set -u
assay=$(realpath "$1")
. "$(dirname "$(realpath "$0")")/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
command -v setsid > /dev/null || { echo "1..0 # SKIP setsid is not installed"; exit 0; }
scratch
server=
trap '[ -z "$server" ] || pkill -KILL -s "$server"; rm -rf "$tmp"' EXIT
ASSAY_SERVE_HANG_S=2
export ASSAY_SERVE_HANG_S
"$assay" make-model --shape tiny --seed 3 --out tiny > out 2> err || { cat err; exit 1; }
"$assay" serve tiny --device cpu --port 0 --memory 1MB > out 2> err
if grep -q 'built without' err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi

model=tiny
# start OPTION..: the server of $model in a session of its own, $server; it may be still loading
start() {
	: > serve.out # what the one before said is not this one's
	setsid "$assay" serve "$model" --port 0 --device cpu "$@" > serve.out 2> serve.err < /dev/null &
	server=$!
}
# tries COMMAND..: until it succeeds, for a minute at most
tries() { for _ in $(seq 600); do "$@" && return 0; sleep 0.1; done; return 1; }
has_url() { grep -q '^API' serve.out; }
is_ready() { curl -s "$url/ready" | grep -q '"ready"'; }
# up OPTION..: the server is ready at $url
up() {
	start "$@"
	tries has_url || { cat serve.err; return 1; }
	url=$(sed -n 's/^API and chat page: //p' serve.out)
	tries is_ready || { cat serve.out serve.err; curl -sv --max-time 5 "$url/ready"; return 1; }
}
empty() { ! pgrep -s "$server" > /dev/null; }
# gone CODE: the server has ended with this exit code, and nothing is left of it
gone() {
	wait "$server"
	code=$?
	cat serve.err
	tries empty || { pgrep -a -s "$server"; return 1; }
	server=
	[ "$code" = "$1" ]
}
down() { kill "$server" && gone 0; }
front() { pgrep -P "$server" -f __front; }
engine() { pgrep -P "$server" -f __engine; }
# another OLD COMMAND: the process that COMMAND names is a new one
another() { new=$("$2") && [ "$new" != "$1" ]; }
post() {
	path=$1 data=$2
	shift 2
	code=$(curl -sN -o out -w '%{http_code}' --max-time 100 "$@" "$url$path" -d "$data")
}
is() { post "$2" "$3" && [ "$code" = "$1" ]; } # STATUS PATH BODY
metric() { curl -s "$url/metrics" | sed -n "s/^$1{.*} //p"; }
metric_is() { [ "$(metric "$1")" = "$2" ]; }
# stream TOKENS: a stream in the background, $stream, that has begun; it writes to `stream`
stream() {
	: > stream
	curl -sN "$url/v1/completions" -d "{\"prompt\":\"Hello\",\"max_tokens\":$1,\"ignore_eos\":true,\"stream\":true,
		\"stream_options\":{\"include_usage\":true}}" > stream &
	stream=$!
	tries grep -q '"text":"' stream
}
whole() { says '"completion_tokens":'"$1" stream && says '^data: \[DONE\]' stream; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
# leaves METRIC: the client $client is killed, and METRIC is 0 within 100 ms. Two questions for metrics and two steps of the
# engine, as long as they take on this machine, are allowed in addition.
leaves() {
	from=$(now_ms)
	step=$(metric assay_engine_step_seconds | awk '{ print int(1000 * $1) + 1 }')
	allowed=$((100 + 2 * ($(now_ms) - from) + 2 * step))
	from=$(now_ms)
	kill "$client"
	for _ in $(seq 1000); do metric_is "$1" 0 && break; done
	took=$(($(now_ms) - from))
	echo "# $1 is 0 after $took ms; $allowed ms are allowed" >> leaves.out
	[ "$took" -le "$allowed" ]
}
# in_some_try CLIENT METRIC: the client that the command CLIENT starts shows in METRIC, and `leaves` holds. Another process may take the
# CPU at any moment, so one try in twenty suffices.
in_some_try() {
	for _ in $(seq 20); do
		$1
		tries metric_is "$2" 1 || return 1
		leaves "$2" && return 0
	done
	return 1
}
queue_one() {
	curl -s -o /dev/null "$url/v1/completions" -d "$hello" &
	client=$!
}
run_one() {
	stream 30000
	client=$stream
}
awk 'BEGIN { printf "{\"max_tokens\":1,\"prompt\":["; for (i = 0; i < 12000; i++) printf "%s%d", i ? "," : "", 10 + i % 200; print "]}" }' > prefill.json
prefill_one() {
	curl -s -o /dev/null "$url/v1/completions" -d @prefill.json &
	client=$!
}
# overtakes FIRST SECOND: five answers of one client, one at a time, and then one of the second client. How many wait when it has come is
# $left. FIRST and SECOND are words of curl that tell the clients apart.
overtakes() {
	curl -s -o /dev/null $1 "$url/v1/completions" -d '{"prompt":"Hello","max_tokens":8000,"n":5,"ignore_eos":true}' &
	five=$!
	tries metric_is assay_requests_waiting 4 || return 1
	curl -s -o out $2 "$url/v1/completions" -d "$hello"
	left=$(metric assay_requests_waiting)
	kill "$five" 2> /dev/null
	tries metric_is assay_requests_running 0 && says text_completion out
}
sooner() { overtakes "$1" "$2" && [ "$left" -ge 3 ]; }
later() { overtakes "$1" "$2" && [ "$left" -lt 3 ]; }
# listens ADDRESS: in the kernel's notation, and nowhere else
listens() { [ "$(awk -v port="$(printf ':%04X' "${url##*:}")" '$4 == "0A" && index($2, port) { print $2 }' /proc/net/tcp)" = "$1$(printf ':%04X' "${url##*:}")" ]; }
chat='"messages":[{"role":"user","content":"Hello"}],"max_tokens":100'
hello='{"prompt":"Hello","max_tokens":4,"ignore_eos":true,"temperature":0}'

ok "no model" expect 64 serve
ok "and its message" says 'no model given: assay serve MODEL' err
ok "a model that is missing" expect 2 serve nowhere --device cpu --port 0
ok "and its message" says 'cannot open model nowhere .*: No such file or directory' err
ok "a page of 48 tokens" expect 64 serve tiny --page-tokens 48
ok "a certificate without a key" expect 64 serve tiny --tls-certificate x
ok "a port that is too large" expect 64 serve tiny --port 99999
ok "an unknown option" expect 64 serve tiny --nothing
ok "no file of keys" expect 2 serve tiny --device cpu --port 0 --api-key-file none
ok "and its message" says 'cannot read the keys in none' err
ok "a plan" expect 0 serve tiny --plan --device cpu
ok "with its device" says '^device  *cpu$' out
ok "and pages" says '^pages of the KV cache  *[0-9]* of 32 tokens' out
ok "a plan as JSON" expect 0 serve tiny --plan --json --device cpu
"$assay" serve tiny --plan --device cpu --memory 100MB > plan
"$assay" serve tiny --plan --device cpu --memory 100MB --json > plan.json
ok "with its tokens" says '"tokens": [0-9]' out
ok "and device" says '"device": "cpu"' out
expect 0 make-model --shape tiny-64 --seed 3 --out tiny64
ok "a plan for a GPU that is not here" expect 0 serve tiny64 --plan --json --device gpu --memory 1GiB
ok "says so" says '"device": "gpu"' out
CUDA_VISIBLE_DEVICES='' "$assay" serve tiny64 --plan --json > out 2> err
ok "a plan without a GPU is for the CPU, as the server is" says '"device": "cpu"' out
CUDA_VISIBLE_DEVICES='' "$assay" serve tiny64 --plan --device gpu > out 2> err
ok "one for a GPU says what it needs" says 'needs --memory' err
fit=$(sed -n 's/^longest sequences that fit  *\([0-9.]*\) of .*/\1/p' plan)
ok "a plan tells how many sequences fit, as JSON too" [ "$fit" = "$(awk '/"sequences_that_fit"/ { printf "%.1f", $2 }' plan.json)" ]
ok "which are fewer than run at once, if the memory is small" eval '[ "${fit%.*}" -lt 16 ]'
ok "a context within the model's positions" expect 0 serve tiny --plan --device cpu --context 32768
ok "causes no warning" eval '! says positions err'
ok "one beyond them" expect 0 serve tiny --plan --device cpu --context 40000
warning='--context is 40000, but the model supports 32768 positions (max_position_embeddings): do not rely on tokens after them'
ok "is warned of with the model's number" says "$warning" err
cp -r tiny yarn
sed -i 's/"rope_scaling": null/"rope_scaling": {"type": "yarn", "factor": 4.0}/' yarn/config.json
ok "YaRN's factor adds positions" eval "expect 0 serve yarn --plan --device cpu --context 131072 && grep -q yarn yarn/config.json && ! says positions err"
ok "up to its product" eval "expect 0 serve yarn --plan --device cpu --context 131073 && says 'supports 131072 positions' err"
ok "an empty name" expect 64 serve tiny --served-model-name ''
ok "is refused" says 'served-model-name is empty' err
ok "a context without room for an answer" expect 64 serve tiny --device cpu --port 0 --context 1
ok "is named" says '--context is 1' err
for origin in "$(printf 'https://a.org\r\nX: y')" 'https://a.org,https://b.org' a.org ''; do
	ok "no origin: $(printf %s "$origin" | tr -d '\r\n')" expect 64 serve tiny --device cpu --port 0 --cors "$origin"
done
ok "names the option" says '--cors must be' err
ok "an unknown chat template" expect 64 serve tiny --chat-template llama4
ok "gets the known names" says 'llama4.* is not a chat template: use auto, chatml, llama3, llama3.1, .*, or a file (with a / or ending in .jinja)' err
ok "a file of a chat template is looked for" expect 2 serve tiny --device cpu --port 0 --chat-template nowhere.jinja
ok "and named" says 'nowhere.jinja' err
mkdir broken && cp tiny/*.json broken && head -c 100000 tiny/model.safetensors > broken/model.safetensors
ok "a model that is cut" expect 64 serve broken --device cpu --port 0
ok "gives the engine's message" says 'broken/model.safetensors' err
ok "too little memory" expect 2 serve tiny --device cpu --port 0 --memory 1MB
ok "gives the engine's message" says 'GB, but weights, working memory and the KV cache .*; raise --memory or reduce --context' err
if command -v openssl > /dev/null; then
	for pair in one two; do
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $pair.key -out $pair.crt -days 2 -subj /CN=localhost > /dev/null 2>&1
	done
	echo text > text.pem
	with_tls() { expect 64 serve tiny --device cpu --port 0 --tls-certificate "$1" --tls-key "$2"; }
	ok "a file without a certificate" with_tls text.pem one.key
	ok "is named" says '\-\-tls-certificate text.pem: it has no certificate in PEM form: ' err
	ok "a file without a key" with_tls one.crt text.pem
	ok "is named too" says '\-\-tls-key text.pem: it has no private key in PEM form: ' err
	ok "a key of another certificate" with_tls one.crt two.key
	ok "is named with both files" says '\-\-tls-certificate one.crt and --tls-key two.key: ' err
fi

ok "it starts" up --chat-template qwen2.5 --request-log log
ok "and listens for this machine only" listens 0100007F
ok "a message without text" is 200 /v1/chat/completions '{"messages":[{"role":"user","content":""}],"max_tokens":1}'
ok "or without parts" is 200 /v1/chat/completions '{"messages":[{"role":"user","content":[]}],"max_tokens":1}'
ok "and prints what it loaded" says '^tiny on cpu: loaded in .* KV cache .* for [0-9]* tokens' serve.out
ok "and a command" says "^curl $url/v1/chat/completions" serve.out
ok "health" sh -c "curl -s $url/health | grep -q ok"
ok "models" sh -c "curl -s $url/v1/models | grep -q '\"id\":\"tiny\"'"
ok "the page" sh -c "curl -s $url/ | grep -q '<title>'"
ok "chat" is 200 /v1/chat/completions "{$chat}"
ok "its usage" says '"usage":{"prompt_tokens":[0-9]*,"completion_tokens":[0-9]*,"total_tokens"' out
ok "n" is 200 /v1/chat/completions "{$chat,\"n\":2,\"seed\":7}"
ok "gives two" says '"index":1' out
ok "a completion" is 200 /v1/completions "$hello"
ok "of its length" says '"finish_reason":"length".*"completion_tokens":4' out
cp out first
is 200 /v1/completions "$hello"
ok "is the same again" [ "$(sed 's/.*"text"/"text"/' out)" = "$(sed 's/.*"text"/"text"/' first)" ]
long=$(head -c 200 /dev/zero | tr '\0' a)
is 200 /v1/completions "{\"prompt\":\"$long\",\"max_tokens\":1}"
is 200 /v1/completions "{\"prompt\":\"$long\",\"max_tokens\":1}"
ok "equal beginnings are cached" says '"prompt_tokens_details":{"cached_tokens":192}' out
ok "with another salt they are not" is 200 /v1/completions "{\"prompt\":\"$long\",\"max_tokens\":1,\"cache_salt\":\"x\"}"
ok "cached" says '"prompt_tokens_details":{"cached_tokens":0}' out
ok "a stream" is 200 /v1/completions '{"prompt":"Hello","max_tokens":5,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}'
ok "with usage" says '"choices":\[\],"usage":{"prompt_tokens":5,"completion_tokens":5' out
ok "and an end" says '^data: \[DONE\]' out
letter='"logit_bias":{"98":100,"99":100},"temperature":1,"seed":1,"max_tokens":200,"ignore_eos":true'
ok "text of two ids" is 200 /v1/completions "{\"prompt\":\"Hello\",$letter}"
text=$(sed 's/.*"text":"\([^"]*\)".*/\1/' out)
stop=$(printf %s "$text" | cut -c 20-29)
ok "a stop string" is 200 /v1/completions "{\"prompt\":\"Hello\",$letter,\"stop\":\"$stop\"}"
ok "cuts the text" [ "$(sed 's/.*"text":"\([^"]*\)".*/\1/' out)" = "${text%%"$stop"*}" ]
ok "with its reason" says '"finish_reason":"stop"' out
ok "echo with log probabilities" is 200 /v1/completions '{"prompt":"Hello","max_tokens":0,"echo":true,"logprobs":2,"temperature":0}'
scores=$(sed 's/.*"token_logprobs":\[\([^]]*\)\].*/\1/' out)
ok "of each token but the first" sh -c "echo '$scores' | grep -qx 'null\(,-[0-9.]*\)\{4\}'"
ok "and with a token more" is 200 /v1/completions '{"prompt":"Hello","max_tokens":1,"echo":true,"logprobs":2,"temperature":0}'
ok "the same ones" says "\"token_logprobs\":\[$scores,-" out
ok "a JSON schema" is 200 /v1/chat/completions "{$chat,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",
	\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[\"x\",\"y\"]}},\"required\":[\"a\"],\"additionalProperties\":false}}}}"
ok "is followed to its end" says '"content":"[ \\nrtu09]*{[ \\nrtu09]*\\"a\\"[ \\nrtu09]*:[ \\nrtu09]*\\"[xy]\\"[ \\nrtu09]*}[ \\nrtu09]*".*"finish_reason":"stop"' out
only_x='"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"enum":["x"]}}}'
ok "a schema's answer that is shorter than min_tokens" is 200 /v1/chat/completions "{$chat,$only_x,\"min_tokens\":90}"
ok "ends complete" says '"content":"\( \|\\[nrt]\|\\u0009\)*\\"x\\"".*"finish_reason":"stop"' out
ok "a bias against the schema" is 400 /v1/chat/completions "{$chat,$only_x,\"logit_bias\":{\"120\":-100}}"
ok "is named" says '"message":"logit_bias forbids every token that can follow.*"param":"logit_bias"' out
ok "a schema that is none" is 400 /v1/chat/completions "{$chat,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",
	\"schema\":{\"type\":\"nothing\"}}}}"
unique='"schema":{"type":"array","items":{"enum":[1]},"maxItems":2,"uniqueItems":true}'
ok "a keyword that cannot be enforced" is 400 /v1/chat/completions "{$chat,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{$unique}}}"
ok "is named, with what to do" says '"message":"schema: keyword \\"uniqueItems\\" is not enforced; remove it, or set \\"strict\\" to false".*"param":"response_format"' out
ok "in each API by its own field" is 400 /v1/responses "{\"input\":\"Hello\",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"a\",$unique}}}"
ok "that of the format" says '"param":"text.format"' out
ok "one that need not be enforced" is 200 /v1/chat/completions "{$chat,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"strict\":false,$unique}}}"
ok "the log tells the number" says '1 keyword in a request.s schema is not enforced' serve.err
ok "and not what the schema says" eval '! grep -q uniqueItems serve.err'
ok "required tools" is 200 /v1/chat/completions "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"max_tokens\":200,\"parallel_tool_calls\":false,\"tool_choice\":\"required\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\",
	\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"enum\":[\"Bern\",\"Genf\"]}},\"required\":[\"city\"],\"additionalProperties\":false}}}]}"
ok "are called" says '"tool_calls":\[{"id":"call_[^"]*","type":"function","function":{"name":"weather","arguments":"{[^}]*\(Bern\|Genf\)[^}]*}"}}\]' out
ok "and the reason" says '"finish_reason":"tool_calls"' out
tool='"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{},"additionalProperties":false}}}]'
ok "tools or an answer with a schema" is 200 /v1/chat/completions "{$chat,$tool,\"parallel_tool_calls\":false,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"enum\":[\"x\"]}}}}"
ok "give one of them, perhaps after white space" says '"content":"\( \|\\[nrt]\|\\u0009\)*\\"x\\""\|"name":"f","arguments":"{[^"]*}"' out
ok "a schema beside tools that cannot be enforced" is 400 /v1/chat/completions "{$chat,$tool,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{$unique}}}"
ok "has its own field" says '"message":"answer.schema: .*"param":"response_format"' out
ok "too long for the context" is 400 /v1/completions '{"prompt":"Hello","max_tokens":60000}'
ok "has OpenAI's code" says '"code":"context_length_exceeded"' out
ok "a second server on the port" expect 2 serve tiny --device cpu --port "${url##*:}"
ok "names it" says "port ${url##*:} of 127.0.0.1 is in use by another program; choose one with --port" err
ok "a client that leaves" stream 30000
ok "is counted as running" metric_is assay_requests_running 1
kill "$stream"
ok "ends in the engine" tries metric_is assay_requests_running 0
ok "and is logged" tries says '"end":"left"' log
ok "the log has lengths" says '"endpoint":"/v1/completions","status":200,"end":"sent","body_bytes":[0-9]*,.*"tokens":4,' log
ok "TERM ends it, and nothing is left" down

ok "limits" up --max-queue 2 --max-body 1000 --max-sequences 1 --no-prefix-cache
ok "a body that is too large" is 413 /v1/completions "{\"prompt\":\"$(head -c 2000 /dev/zero | tr '\0' a)\"}"
ok "more than the queue holds" is 429 /v1/completions '{"prompt":"a","max_tokens":1,"n":3}'
ok "fewer" is 200 /v1/completions '{"prompt":"a","max_tokens":1,"n":2}'
is 200 /v1/completions "{\"prompt\":\"$long\",\"max_tokens\":1}"
is 200 /v1/completions "{\"prompt\":\"$long\",\"max_tokens\":1}"
ok "nothing is cached" says '"cached_tokens":0' out
ok "a request that runs, before one in the queue" stream 30000
ok "which waits, and is gone within 100 ms of its client" in_some_try queue_one assay_requests_waiting
ok "while the other goes on" metric_is assay_requests_running 1
kill "$stream"
ok "until its client leaves too" tries metric_is assay_requests_running 0
ok "a request that runs is gone within 100 ms, too" in_some_try run_one assay_requests_running
cat leaves.out
ok "a stream that is killed" stream 30000
curl -s -o whole.out -w '%{http_code}' --max-time 100 "$url/v1/completions" -d "$hello" > whole.code &
whole=$!
tries metric_is assay_requests_waiting 1
before=$(engine)
kill -KILL "$before"
wait "$stream"
ok "ends with the cause" says '{"error":{"message":"the engine was lost while it ran this request: .*"code":"engine_lost"' stream
wait "$whole"
ok "a request that waited is tried again" [ "$(cat whole.code)" = 200 ]
ok "and the engine is another" another "$before" engine
ok "the supervisor says why" says 'the engine ended: signal 9 (Killed); it starts again in 0.5 s' serve.err
# without a supervisor no engine comes back, so the answer is certain
kill -STOP "$server"
kill -KILL "$(engine)"
unavailable() { is 503 /v1/completions "$hello"; }
ok "an engine that is killed while idle is 503" tries unavailable
ok "with the cause" says 'the engine process ended.*"code":"engine_unavailable"' out
ok "it is not ready" sh -c "curl -s -o /dev/null -w '%{http_code}' $url/ready | grep -q 503"
ok "but alive" sh -c "curl -s $url/health | grep -q ok"
kill -CONT "$server"
ok "and it comes back" tries is_ready
ok "and answers" is 200 /v1/completions "$hello"
before=$(engine)
ok "a stream whose engine stops" stream 30000
kill -STOP "$before"
wait "$stream"
ok "ends with the cause" says 'the engine has not answered for [0-9.]* s.*"code":"engine_lost"' stream
ok "the engine is replaced" tries another "$before" engine
ok "and ready" tries is_ready
before=$(engine)
kill -STOP "$before"
ok "an idle engine that stops is replaced too" tries another "$before" engine
ok "and ready" tries is_ready
engine_before=$(engine)
before=$(front)
kill -STOP "$server" "$before" "$engine_before"
sleep 7 # longer than any of them may be silent
kill -CONT "$server" "$before"
sleep 0.3
kill -CONT "$engine_before"
ok "a pause of all processes is no fault of one" is 200 /v1/completions "$hello"
ok "both are the same" [ "$(front) $(engine)" = "$before $engine_before" ]
kill -KILL "$before"
ok "a front end that is killed is replaced" tries another "$before" front
ok "with its engine" tries another "$engine_before" engine
ok "at the same port" tries is_ready
ok "and answers" is 200 /v1/completions "$hello"
engine_before=$(engine)
before=$(front)
kill -STOP "$before"
ok "a front end that stops is replaced too" tries another "$before" front
ok "with its engine " tries another "$engine_before" engine
ok "the supervisor says why " says 'the front end ended: it sent no message for [0-9]* s; it was ended as hung; both processes start again' serve.err
ok "it is ready" tries is_ready
kill -STOP "$(front)"
ok "nothing is left" down

ok "one answer at a time" up --max-sequences 1
ok "another address is another client, which waits for one answer at most" sooner "" "--interface 127.0.0.2"
ok "the same client waits for its own answers" later "" ""
ok "a request whose prompt is being read is gone within 100 ms of its client" in_some_try prefill_one assay_requests_running
cat leaves.out
ok "and it ends  " down
printf 'secret-a\nsecret-b\n' > keys && chmod 600 keys
ok "clients with keys" up --api-key-file keys --max-sequences 1
ok "the command that it prints has a place for the key" says "^curl -H 'Authorization: Bearer KEY' http" serve.out
ok "another key is another client" sooner "-H x-api-key:secret-a" "-H x-api-key:secret-b"
ok "the same key is the same one, from any address" later "-H x-api-key:secret-a" "-H x-api-key:secret-a --interface 127.0.0.2"
ok "and it ends " down
ok "a server for other machines" up --host 0.0.0.0
ok "listens on all addresses" listens 00000000
ok "and it ends  " down

cp -r tiny own
echo '{"do_sample": false, "max_new_tokens": 100000}' > own/generation_config.json
model=own
ok "a model that does not sample, and has a length of its own" up --context 300
model=tiny
ok "ends at the context" is 200 /v1/completions '{"prompt":[5,6,7],"ignore_eos":true}'
ok "with as many tokens as fit" says '"completion_tokens":297' out
ok "fewer than must be are refused" is 400 /v1/completions '{"prompt":[5,6,7],"min_tokens":298,"ignore_eos":true}'
ok "so is a prompt that fills it" is 400 /v1/completions "{\"prompt\":[$(seq -s , 1 150),$(seq -s , 1 150)],\"ignore_eos\":true}"
ok "is told" says '"code":"context_length_exceeded"' out
is 200 /v1/completions '{"prompt":[5,6,7],"max_tokens":40,"ignore_eos":true}' && sed 's/"id":[^,]*,//; s/"created":[^,]*,//' out > once
is 200 /v1/completions '{"prompt":[5,6,7],"max_tokens":40,"ignore_eos":true}' && sed 's/"id":[^,]*,//; s/"created":[^,]*,//; s/"cached_tokens":[0-9]*/"cached_tokens":0/' out > twice
ok "two answers without a temperature are equal" cmp once twice
ok "and it ends   " down

ok "a limit of time" up --max-seconds 3
ok "a whole answer that takes longer" is 503 /v1/completions '{"prompt":"Hello","max_tokens":32000,"n":16,"ignore_eos":true}'
ok "ends with the cause" says 'did not end within its time limit.*"code":"deadline"' out
curl -sN "$url/v1/completions" -d '{"prompt":"Hello","max_tokens":32000,"n":16,"ignore_eos":true,"stream":true}' > stream
ok "a stream has begun" says '"text":"' stream
ok "and ends with it" says '^data: {"error":.*"code":"deadline"' stream
ok "nothing goes on" tries metric_is assay_requests_running 0
ok "and it ends" down
# An address alone is not enough: a sandbox may have ::1 and drop what is sent to it. Port 1 has no server, so it refuses.
if curl -sv --max-time 5 'http://[::1]:1/' 2>&1 | grep -q 'Connection refused'; then
	ok "an address of IPv6" up --host ::1
	ok "ends" down
	ok "in brackets too" up --host '[::1]'
	ok "is in brackets in the URL" says '^API and chat page: http://\[::1\]:[0-9]*$' serve.out
	ok "and in the command" says '^curl http://\[::1\]:[0-9]*/v1' serve.out
	ok "it answers there" is 200 /v1/completions "$hello"
	ok "and ends" down
else
	echo "# this machine cannot connect to ::1"
fi
ok "a server to drain" up
ok "has a stream" stream 1000
kill "$server"
ok "TERM lets it end" gone 0
wait "$stream"
ok "as a whole" whole 1000
ok "fields of other servers that constrain an answer" up
ok "are refused, because nothing would enforce them" is 400 /v1/completions '{"prompt":"Hello","max_tokens":3,"structured_outputs":{"choice":["yes","no"]}}'
ok "by name, with what to use instead" says 'structured_outputs is a field of another server.*response_format' out
ok "as long as they are set" is 200 /v1/completions '{"prompt":"Hello","max_tokens":3,"guided_json":null}'
ok "an idle server ends" down
ok "without a warning that its engine is gone" eval '! says "the engine ended" serve.err'
ok "a server to end at once" up
ok "has a stream" stream 32000
kill -INT "$server"
tries says 'stopping: finishing' serve.err
kill -INT "$server"
ok "a second signal ends it" gone 0
ok "which it says" says "stopped at once: requests that still ran got no answer" serve.err
wait "$stream"
ok "in mid-stream" sh -c "! grep -q DONE stream"
ok "a server that drains" up
ok "has a stream" stream 32000
kill -TERM "$server"
tries says 'stopping: finishing' serve.err
kill -KILL "$(engine)"
ok "ends also if its engine dies" gone 0
wait "$stream"
ok "and the stream says so" says '"code":"engine_lost"' stream
ok "a supervisor" up
kill -KILL "$server"
ok "takes both with it" gone 137
start
tries engine > /dev/null
kill -TERM "$server"
ok "TERM while it loads" gone 0

# id 60 is <, and 263 is <think>: with one of them a thought begins
ok "a model that thinks" up --chat-template qwen3
ok "may leave out its thought" is 200 /v1/chat/completions "{$chat,$only_x,\"logit_bias\":{\"60\":-100,\"263\":-100}}"
ok "and then follows the schema at once" says '"content":"\( \|\\[nrt]\|\\u0009\)*\\"x\\"".*"finish_reason":"stop"' out
ok "or thinks" is 200 /v1/chat/completions "{$chat,$only_x,\"logit_bias\":{\"60\":100}}"
ok "of anything" says '"reasoning_content":"<<<.*"finish_reason":"length"' out
ok "it ends" down

# The tokenizer alone names no token that ends a text.
mv tiny whole
cp -r whole tiny && rm tiny/tokenizer_config.json tiny/generation_config.json
ok "a model whose files name no end of a text is served" up --chat-template chatml
ok "which is told" says 'names a token that ends a text' serve.err
ok "it completes texts" is 200 /v1/completions "$hello"
ok "and refuses grammars" is 400 /v1/completions '{"prompt":"Hello","max_tokens":3,"response_format":{"type":"json_object"}}'
ok "with the reason" says 'name no token that ends a text' out
ok "it ends" down
rm -rf tiny && mv whole tiny

ok "a full disk" up --request-log /dev/full
ok "loses the log only" is 200 /v1/completions "$hello"
ok "and says so" says 'cannot write the request log: No space left on device' serve.err
ok "nothing is left" down
finish

#!/bin/sh
# The HTTP front end as clients see it, with an engine that has no model: every endpoint, streams, stop strings, tool calls,
# thoughts, keys, limits, hostile and slow clients, an engine that dies, hangs or fails, and the drain.
# usage: serve_front.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
trap '[ -z "$front" ] || kill "$front"; rm -rf "$tmp"' EXIT
ASSAY_MODULE_DIR=$build/src/serve
export ASSAY_MODULE_DIR
"$build/tests/serve/serve_front" "$root/tests/data/tokenizer/qwen.json" > out 2> err < /dev/null &
probe=$!
sleep 0.3
if grep -q 'built without' err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi
kill "$probe" 2> /dev/null
front=
mkdir model && cp "$root/tests/data/tokenizer/qwen.json" model/tokenizer.json
echo '{"eos_token": "<|im_end|>"}' > model/tokenizer_config.json
# The front end alone loads libmicrohttpd, through a module.
ok "no other process loads it" eval '! ldd "$build/src/assay" | grep -q "microhttpd\|gnutls"'
ASSAY_MODULE_DIR='' "$build/tests/serve/serve_front" model --chat-template qwen2.5 -- "$build/tests/serve/stand_in_engine" > out 2> err < /dev/null
ok "without the module there is no server" [ $? != 0 ]
ok "and it is named" says 'libassay-http.so' err
# up FRONT-OPTIONS -- ENGINE-OPTIONS: the server; $url
up() {
	front_words='--chat-template qwen2.5' engine_words=
	while [ $# -gt 0 ] && [ "$1" != -- ]; do front_words="$front_words $1" && shift; done
	[ $# = 0 ] || shift
	engine_words=$*
	rm -f port.out
	${under:-} "$build/tests/serve/serve_front" "$tmp/model" $front_words -- "$build/tests/serve/stand_in_engine" $engine_words \
		dump="$tmp/dump" answer="$tmp/answer" > port.out 2> front.err < /dev/null &
	front=$!
	for _ in $(seq 300); do grep -q port port.out && break; sleep 0.05; done
	url=http://127.0.0.1:$(sed -n 's/^port //p' port.out)
	for _ in $(seq 300); do curl -sk "${scheme:-http}://${url#*://}/ready" | grep -q '"ready"' && return 0; sleep 0.05; done
	cat front.err
	return 1
}
down() {
	[ "$front" ] || return 0
	kill "$front"
	wait "$front" || { cat front.err >&2; ok "the front end ends well" false; }
	front=
}
# post PATH BODY [CURL-OPTION..]: out is the body, code the status
post() {
	path=$1 data=$2
	shift 2
	code=$(curl -sN -o out -w '%{http_code}' --max-time 60 "$@" "$url$path" -H 'Content-Type: application/json' -d "$data")
}
is() { post "$2" "$3" && [ "$code" = "$1" ]; } # STATUS PATH BODY
wrong() { is 400 "$1" "$2" && grep -q "\"param\":\"$3\"" out; } # PATH BODY PARAM
metric() { curl -s "$url/metrics" | sed -n "s/^$1{.*} //p"; }
until_metric() { for _ in $(seq 400); do [ "$(metric "$1")" = "$2" ] && return 0; sleep 0.05; done; return 1; }
# say TEXT: what the engine answers from now on
say() {
	body=$(printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }')
	post /tokenize "{\"prompt\": \"$body\"}"
	sed 's/.*"tokens":\[\([^]]*\)\].*/\1/; s/,/ /g' out > "$tmp/answer"
}
echo_prompt() { rm -f "$tmp/answer"; }
texts() { sed -n 's/.*"delta":{"content":"\(.*\)"},"logprobs".*/\1/p' out | tr -d '\n'; } # of a chat stream
chat='"messages":[{"role":"user","content":"Hello"}]'

ok "it starts" up --request-log log --cors-origin https://page.example -- step_us=1000
ok "health" sh -c "curl -s $url/health | grep -q ok"
ok "models" sh -c "curl -s $url/v1/models | grep -q '\"id\":\"stand-in\".*\"id\":\"tuned\".*\"parent\":\"stand-in\"'"
ok "vllm bench serve reads a model's root" sh -c "curl -s $url/v1/models/stand-in | grep -q '\"root\":\"stand-in\",\"parent\":null' && curl -s $url/v1/models/tuned | grep -q '\"root\":\"stand-in\"'"
ok "one model" sh -c "curl -s $url/v1/models/tuned | grep -q '\"parent\":\"stand-in\"'"
ok "the page" sh -c "curl -s $url/ | grep -q '<title>'"
ok "HEAD" sh -c "curl -sI $url/health | grep -q '200 OK'"
ok "several requests on one connection" [ "$(curl -s -o out -w '%{num_connects} ' "$url/health" "$url/ready" -o out2 "$url/v1/models" -o out3)" = '1 0 0 ' ]
ok "an unknown endpoint is 404" is 404 /v1/nothing '{}'
ok "in OpenAI's shape" says '{"error":{"message":"there is no endpoint /v1/nothing","type":"not_found_error","param":null,"code":"not_found"}}' out
ok "a wrong method is 405" [ "$(curl -s -o out -w '%{http_code}' "$url/v1/completions")" = 405 ]
ok "and names the right one" sh -c "curl -si $url/v1/completions | tr -d '\r' | grep -qx 'Allow: POST'"
ok "a preflight is answered" sh -c "curl -s -i -X OPTIONS $url/v1/chat/completions | grep -qi 'access-control-allow-origin: https://page.example'"

say 'The quick brown föx jumps over it all.'
ok "chat" is 200 /v1/chat/completions "{$chat}"
ok "its text" says '"content":"The quick brown föx jumps over it all."' out
ok "it stopped" says '"finish_reason":"stop"' out
ok "and its usage" says '"usage":{"prompt_tokens":[0-9]*,"completion_tokens":[0-9]*,"total_tokens":[0-9]*,"prompt_tokens_details":{"cached_tokens":[0-9]*}' out
ok "chat as a stream" is 200 /v1/chat/completions "{$chat,\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
ok "the same text" [ "$(texts)" = 'The quick brown föx jumps over it all.' ]
ok "a role first" sh -c "head -1 out | grep -q '\"role\":\"assistant\"'"
ok "usage" says '"choices":\[\],"usage":{"prompt_tokens"' out
ok "and an end" [ "$(tail -2 out | head -1)" = 'data: [DONE]' ]
ok "a stop string across tokens" is 200 /v1/chat/completions "{$chat,\"stop\":[\"n föx j\"],\"stream\":true}"
ok "cuts the text" [ "$(texts)" = 'The quick brow' ]
ok "a stop string that is shown" is 200 /v1/chat/completions "{$chat,\"stop\":\"jumps\",\"include_stop_str_in_output\":true}"
ok "is in the text" says 'föx jumps"' out
ok "max_completion_tokens" is 200 /v1/chat/completions "{$chat,\"max_completion_tokens\":2}"
ok "cuts" says '"finish_reason":"length"' out
ok "n" is 200 /v1/chat/completions "{$chat,\"n\":3,\"seed\":7}"
ok "gives three" says '"index":2' out
ok "with seeds that follow" [ "$(tail -3 dump | sed 's/.*seed=\([0-9]*\) .*/\1/' | tr '\n' ' ')" = '7 8 9 ' ]
ok "log probabilities" is 200 /v1/chat/completions "{$chat,\"logprobs\":true,\"top_logprobs\":2,\"stream\":true}"
ok "in the chunks" says '"logprobs":{"content":\[{"token":"[^"]*","logprob":-0.25,"bytes":\[[0-9,]*\],"top_logprobs":\[{' out
ok "content parts and a developer" is 200 /v1/chat/completions \
	'{"messages":[{"role":"developer","content":"Be kind"},{"role":"user","content":[{"type":"text","text":"Hi"}]}]}'
ok "an image is refused by name" wrong /v1/chat/completions \
	'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}' 'messages\[0\].content\[0\]'
ok "the engine gets the settings" is 200 /v1/chat/completions "{$chat,\"temperature\":0.5,\"top_p\":0.9,\"top_k\":5,\"min_p\":0.1,
	\"repetition_penalty\":1.5,\"presence_penalty\":1,\"frequency_penalty\":-1,\"seed\":42,\"logit_bias\":{\"5\":-100},\"min_tokens\":1,
	\"stop_token_ids\":[7],\"priority\":-3,\"cache_salt\":\"a\",\"model\":\"tuned\",\"max_tokens\":9}"
ok "all of them" sh -c "tail -1 dump | grep -q 'max=9 min=1 temperature=0.5 top_p=0.9 top_k=5 min_p=0.1 repetition=1.5 presence=1 frequency=-1 seed=42 stops=2 biases=1 logprobs=-1 prompt_logprobs=-1 priority=-3 adapter=0 salt=1 '"
ok "a JSON schema" is 200 /v1/chat/completions "{$chat,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",\"schema\":{\"type\":\"object\"}}}}"
ok "becomes a grammar" sh -c "tail -1 dump | grep -q 'grammar={\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"},\"strict\":true}'"
ok "unknown fields are ignored" is 200 /v1/chat/completions "{$chat,\"some_new_field\":1,\"my_name\":2,\"use_beam_search\":true}"
ok "as often as they come" is 200 /v1/chat/completions "{$chat,\"my_name\":1,\"other_name\":2,\"use_beam_search\":true}"
ok "those of other servers are logged once" sh -c "grep -c 'field of another server, which is ignored: use_beam_search' front.err | grep -qx 1"
ok "others are counted" sh -c "grep -c 'a request has 2 fields that are not known' front.err | grep -qx 1"
ok "and not named" eval '! grep -q "some_new_field\|my_name\|other_name" front.err'
ok "a wrong type names its field" wrong /v1/chat/completions "{$chat,\"temperature\":\"hot\"}" temperature
ok "an unknown model is 404" is 404 /v1/chat/completions "{$chat,\"model\":\"gpt-9\"}"
ok "too long for the context" is 400 /v1/chat/completions "{$chat,\"max_tokens\":5000}"
ok "has OpenAI's code" says '"code":"context_length_exceeded"' out
ok "and names the field" says '"param":"messages"' out
ok "of each API" wrong /v1/responses "{\"input\":\"a\",\"max_output_tokens\":5000}" input
long=$(yes 5 | head -n 5000 | paste -sd ,)
ok "too long only to be scored" is 400 /v1/completions "{\"prompt\":[$long],\"echo\":true,\"max_tokens\":0,\"logprobs\":0}"
ok "asks for no tokens" says 'the request has 5000 tokens in the prompt"' out
ok "an unknown model is named" eval 'is 404 /v1/chat/completions "{$chat,\"model\":\"gpt-9\"}" && says "\"param\":\"model\"" out'
ok "no messages" wrong /v1/chat/completions '{"messages":[]}' messages

echo_prompt
ok "completion" is 200 /v1/completions '{"prompt":"Hello you","echo":true,"logprobs":1,"max_tokens":3}'
ok "with its prompt scored" says '"text":"Hello youHello","logprobs":{"tokens":\["H",.*"token_logprobs":\[null,-0.25' out
ok "only scored" is 200 /v1/completions '{"prompt":"Hello you","echo":true,"logprobs":1,"max_tokens":0}'
ok "gives no more" says '"text":"Hello you",' out
ok "of one token too" is 200 /v1/completions '{"prompt":[5],"echo":true,"logprobs":0,"max_tokens":0}'
ok "without a probability" says '"token_logprobs":\[null\],"top_logprobs":\[null\],"text_offset":\[0\]' out
ok "several prompts, twice each" is 200 /v1/completions '{"prompt":["Hello","you"],"n":2,"max_tokens":4}'
ok "in order" says '"index":0,"text":"Hello.*"index":2,"text":"you.*"index":3,"text":"you' out
ok "token ids" is 200 /v1/completions '{"prompt":[[5,6],[7]],"max_tokens":1}'
ok "a stream with echo" is 200 /v1/completions '{"prompt":"Hello","echo":true,"stream":true,"max_tokens":1}'
ok "begins with the prompt" sh -c "head -1 out | grep -q '\"text\":\"Hello\"'"
ok "tokenize and back" is 200 /tokenize '{"prompt":"Hello wörld","return_token_strs":true}'
ok "to the same text" is 200 /detokenize "{\"tokens\":$(sed 's/.*"tokens":\(\[[^]]*\]\).*/\1/' out)}"
ok "as it was" says '{"prompt":"Hello wörld"}' out
ok "tokenize a conversation" is 200 /tokenize "{$chat}"

tools='"tools":[{"type":"function","function":{"name":"weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]'
say 'Let me see.
<tool_call>
{"name": "weather", "arguments": {"city": "Bern </tool_call>"}}
</tool_call>
<tool_call>
{"name": "weather", "arguments": {"city": "Genf", "days": [1, 2]}}
</tool_call>'
ok "tool calls as a stream" is 200 /v1/chat/completions "{$chat,$tools,\"stream\":true}"
ok "text before" [ "$(texts)" = 'Let me see.' ]
ok "a name" says '"tool_calls":\[{"index":1,"id":"call_[^"]*","type":"function","function":{"name":"weather","arguments":""}}\]' out
arguments() { sed -n "s/.*\"tool_calls\":\[{\"index\":$1,\"function\":{\"arguments\":\"\(.*\)\"}}\]},\"log.*/\1/p" out | tr -d '\n'; }
ok "arguments as deltas" [ "$(arguments 0)" = '{\"city\": \"Bern </tool_call>\"}' ]
ok "of each call" [ "$(arguments 1)" = '{\"city\": \"Genf\", \"days\": [1, 2]}' ]
ok "and the reason" says '"finish_reason":"tool_calls"' out
say '<tool_call>
{"name": "weather", "arguments": {"city": "Genf"}}
</tool_call>'
ok "tool calls at once" is 200 /v1/chat/completions "{$chat,$tools,\"tool_choice\":\"required\"}"
ok "parsed" says '"content":null,"refusal":null,"tool_calls":\[{"id":"call_[^"]*","type":"function","function":{"name":"weather","arguments":"{\\"city\\": \\"Genf\\"}"}}\]}' out
ok "their grammar" sh -c "tail -1 dump | grep -q '\"type\":\"tool_calls\",\"format\":\"chatml\",\"tools\":\[{\"type\":\"function\",\"function\":{\"name\":\"weather\".*\"mode\":\"required\"'"
ok "no tools wanted" is 200 /v1/chat/completions "{$chat,$tools,\"tool_choice\":\"none\"}"
ok "leaves the text alone" says '"content":"<tool_call>' out
ok "a tool that is not there" wrong /v1/chat/completions "{$chat,$tools,\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"x\"}}}" tool_choice
ok "messages: a tool" is 200 /v1/messages "{$chat,\"max_tokens\":99,\"tools\":[{\"name\":\"weather\",\"input_schema\":{\"type\":\"object\"}}]}"
ok "messages: its input" says '"type":"tool_use","id":"call_[^"]*","name":"weather","input":{"city": "Genf"}}\],"stop_reason":"tool_use"' out
ok "messages: as a stream" is 200 /v1/messages "{$chat,\"max_tokens\":99,\"stream\":true,\"tools\":[{\"name\":\"weather\",\"input_schema\":{\"type\":\"object\"}}]}"
ok "messages: input as deltas" says '"delta":{"type":"input_json_delta","partial_json":"' out
ok "responses: a tool" is 200 /v1/responses "{\"input\":\"Hi\",\"tools\":[{\"type\":\"function\",\"name\":\"weather\",\"parameters\":{\"type\":\"object\"}}]}"
ok "responses: its item" says '"type":"function_call","id":"fc_[^"]*","call_id":"call_[^"]*","status":"completed","name":"weather","arguments":"{\\"city\\": \\"Genf\\"}"' out
say 'A plain answer.'
ok "messages" is 200 /v1/messages "{\"system\":\"Be brief\",$chat,\"max_tokens\":99,\"stop_sequences\":[\" answer\"]}"
ok "messages: the stop" says '"content":\[{"type":"text","text":"A plain"}\],"stop_reason":"stop_sequence","stop_sequence":" answer","usage":{"input_tokens":[0-9]*' out
ok "messages need max_tokens" is 400 /v1/messages "{$chat}"
ok "messages: the error's shape" says '{"type":"error","error":{"type":"invalid_request_error"' out
ok "responses as a stream" is 200 /v1/responses '{"input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]}],"stream":true}'
ok "responses: the end" sh -c "tail -2 out | grep -q '\"type\":\"response.completed\".*\"text\":\"A plain answer.\"'"
ok "responses are not stored" wrong /v1/responses '{"input":"a","previous_response_id":"x"}' previous_response_id

for bad in '' '{' '[]' 'null' '{"messages":' '{"a":1}{"b":2}' '{"messages":[{"role":"user","content":"\u0000"}]}' '{"messages":[{"role":"user","content":"\ud800"}]}' \
	'{"messages":{}}' '{"messages":[1]}' '{"messages":[{"role":"wizard","content":""}]}' '{"max_tokens":1e999}' '{"seed":123456789012345678901234567890}'; do
	ok "hostile JSON: $bad" is 400 /v1/chat/completions "$bad"
done
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' > deep
ok "hostile JSON: deep" [ "$(curl -s -o out -w '%{http_code}' --data-binary @deep "$url/v1/chat/completions")" = 400 ]
printf '{"messages":[{"role":"user","content":"\377\376"}]}' > bytes
ok "hostile JSON: no UTF-8" [ "$(curl -s -o out -w '%{http_code}' --data-binary @bytes "$url/v1/chat/completions")" = 400 ]
head -c 100000000 /dev/zero > big
ok "a body of 100 MB" [ "$(curl -s -o out -w '%{http_code}' --data-binary @big "$url/v1/chat/completions")" = 413 ]
ok "without asking first" [ "$(curl -s -o out -w '%{http_code}' -H Expect: --data-binary @big "$url/v1/chat/completions")" = 413 ]
ok "in chunks" [ "$(curl -s -o out -w '%{http_code}' -H Expect: -H 'Transfer-Encoding: chunked' --data-binary @big "$url/v1/chat/completions")" = 413 ]
rm -f big
head -c 60000 /dev/zero | tr '\0' a > long
ok "a long header" [ "$(curl -s -o out -w '%{http_code}' -H "X-Long: $(cat long)" "$url/health")" = 431 ]
# These never reach our code: libmicrohttpd answers with a page of its own and closes the connection, as the how-to says.
# raw TEXT: the server's answer to these bytes is in out, up to the end of the connection
raw() { printf "$1" | timeout 60 curl -sN "telnet://${url#http://}" > out; }
one_length='states the length of the body more than once'
raw 'GET http://host.example/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
ok "a target with a host" sh -c "head -n 1 out | grep -q 200 && grep -q ok out"
raw 'GET HTTP://host.example HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
ok "one without a path" sh -c "head -n 1 out | grep -q 200 && grep -q '<title>assay' out"
for two in 'Content-Length: 5\r\nContent-Length: 60' 'Content-Length: 5\r\nTransfer-Encoding: chunked'; do
	raw "POST /tokenize HTTP/1.1\r\nHost: a\r\n$two\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"
	ok "a body with two lengths is refused" sh -c "head -n 1 out | grep -q '^HTTP/1.1 400 ' && grep -q '$one_length' out"
	ok "and nothing after it is read" [ "$(grep -c '^HTTP/1.1 ' out)" = 1 ]
	raw "POST /v1/nothing HTTP/1.1\r\nHost: a\r\n$two\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"
	ok "nor after one to no endpoint" [ "$(grep -c '^HTTP/1.1 ' out)" = 1 ]
done
by_library() { raw "$2" && head -n 1 out | grep -q "^HTTP/1.1 $1 " && says '^Connection: close' out && says '<title>' out; } # STATUS TEXT
ok "a long path is 414" by_library 414 "GET /$(cat long) HTTP/1.1\r\nHost: a\r\n\r\n"
ok "another version of HTTP is 505" by_library 505 'GET /health HTTP/9.1\r\nHost: a\r\n\r\n'
ok "a length that is no number is 400" by_library 400 'POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n'
ok "a chunk without a length too" by_library 400 'POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'
ok "and it serves on" sh -c "curl -s $url/health | grep -q ok"
say "$(awk 'BEGIN { for (i = 0; i < 100; i++) printf "word " }')"
ok "1,000 streams" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 1000 '{$chat,\"stream\":true}' > streams.out; cat streams.out; grep -q '^1000 done' streams.out"
ok "metrics: requests" [ "$(metric assay_requests_success_total)" -gt 1000 ]
ok "metrics: vLLM's names" [ "$(metric vllm:request_success_total)" = "$(metric assay_requests_success_total)" ]
ok "metrics: tokens" [ "$(metric vllm:generation_tokens_total)" -gt 1000 ]
ok "metrics: histograms" sh -c "curl -s $url/metrics | grep -q '^vllm:time_to_first_token_seconds_bucket{model_name=\"stand-in\",le=\"+Inf\"} [0-9]'"
gaps=$(metric assay_inter_token_latency_seconds_count) gap_s=$(metric assay_inter_token_latency_seconds_sum)
means=$(metric assay_time_per_output_token_seconds_count) mean_s=$(metric assay_time_per_output_token_seconds_sum)
is 200 /v1/completions '{"prompt":"Hello","max_tokens":6,"ignore_eos":true}'
ok "metrics: the mean time between tokens of a request" until_metric vllm:request_time_per_output_token_seconds_count $((means + 1))
ok "metrics: each time between tokens" [ "$(metric vllm:inter_token_latency_seconds_count)" = $((gaps + 5)) ]
ok "metrics: which together last as long" awk -v gap="$gap_s" -v mean="$mean_s" -v gap_now="$(metric assay_inter_token_latency_seconds_sum)" \
	-v mean_now="$(metric assay_time_per_output_token_seconds_sum)" 'BEGIN {
		d = gap_now - gap - 5 * (mean_now - mean)
		exit !(gap_now > gap && d < 1e-5 && d > -1e-5) }'
is 200 /v1/completions '{"prompt":"Hello","max_tokens":6,"n":2,"ignore_eos":true}'
ok "metrics: also of a request with two answers" until_metric assay_time_per_output_token_seconds_count $((means + 2))
ok "metrics: whose tokens are counted apart" [ "$(metric assay_inter_token_latency_seconds_count)" = $((gaps + 15)) ]
ok "the log has lengths and times" says '"endpoint":"/v1/chat/completions","status":200,"end":"sent","body_bytes":[0-9]*,"id":"chatcmpl-[^"]*","stream":true,"choices":1,"prompt_tokens":[0-9]*,"cached_tokens":[0-9]*,"tokens":[0-9]*,"retries":0,"first_token_s":[0-9.]*,"total_s":[0-9.]*}' log
ok "and no contents" sh -c "! grep -q 'Hello' log front.err"
ok "the port is in use" sh -c "'$build/tests/serve/serve_front' '$tmp/model' --port ${url##*:} > /dev/null 2> err < /dev/null; [ \$? = 2 ] && grep -q 'is in use by another program; choose one with --port' err"
down

echo_prompt
umask 077
printf '# keys\nsecret-one\nsecret-two\n' > keys
ok "with keys and a small queue" up --api-key-file keys --queue 4 --read-s 1 --idle-s 2 --unread-bytes 20000 --connections 40 -- step_us=20000
ok "health needs none" sh -c "curl -s $url/health | grep -q ok"
ok "a missing key is 401" is 401 /v1/chat/completions "{$chat}"
post /v1/chat/completions "{$chat}" -H 'Authorization: Bearer secret-onE'
ok "a wrong one too" [ "$code" = 401 ]
post /v1/completions '{"prompt":"a","max_tokens":1}' -H 'Authorization: Bearer secret-two'
ok "a right one" [ "$code" = 200 ]
post /v1/completions '{"prompt":"a","max_tokens":1}' -H 'x-api-key: secret-one'
ok "as x-api-key" [ "$code" = 200 ]
key='Authorization: Bearer secret-one'
post /v1/completions '{"prompt":"a","max_tokens":1,"n":5}' -H "$key" -D head
ok "a full queue is 429" [ "$code" = 429 ]
ok "with Retry-After" sh -c "grep -qi '^retry-after: 1' head"
long='{"prompt":"Hello you there my friend","max_tokens":3000,"stream":true,"ignore_eos":true}'
curl -sN "$url/v1/completions" -H "$key" -d "$long" > left.out &
leaving=$!
for _ in $(seq 400); do grep -q '"text":"H"' left.out && break; sleep 0.05; done
kill $leaving
ok "a client that leaves" says '"text":"H"' left.out
ok "is cancelled" until_metric assay_requests_left_total 1
ok "in the engine too" until_metric assay_requests_running 0
curl -s "$url/v1/completions" -H "$key" -d '{"prompt":"Hello you","max_tokens":3000,"ignore_eos":true}' > left.out &
leaving=$!
until_metric assay_requests_running 1
kill $leaving
ok "one that waits for a whole answer too" until_metric assay_requests_left_total 2
ok "in the engine, too" until_metric assay_requests_running 0
ok "a slow client is closed" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 3 '{\"prompt\":\"a\"}' partial > slow.out; cat slow.out; grep -q '^3 closed' slow.out"
ok "one that does not end its header too" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 3 x header > slow.out; cat slow.out; grep -q '^3 closed' slow.out"
ok "connections without a request are closed, also those beyond the limit" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 60 x silent > silent.out; cat silent.out; grep -q '^60 closed' silent.out"
ok "and it serves on" sh -c "curl -s --max-time 10 $url/health | grep -q ok"
chmod 644 keys
ok "keys that others can read" sh -c "'$build/tests/serve/serve_front' '$tmp/model' --api-key-file keys > /dev/null 2> err < /dev/null; [ \$? = 2 ] && grep -q 'keys can be used by other users (mode 644); run chmod 600 on it' err"
for bad in 'k\000e\000y\000\n\000' 'one\ntwo\001\n'; do
	(umask 077 && printf "$bad" > badkeys)
	ok "keys with a control character are refused by file, line and byte" sh -c "'$build/tests/serve/serve_front' '$tmp/model' --api-key-file badkeys > /dev/null 2> err < /dev/null; [ \$? = 2 ] && grep -q 'badkeys:[12]: byte [24] of the key is the control character 0x0[01]' err"
done
ok "no file of keys" sh -c "'$build/tests/serve/serve_front' '$tmp/model' --api-key-file nowhere > /dev/null 2> err < /dev/null; [ \$? = 2 ] && grep -q 'nowhere' err"
down

# One client holds all connections that the server allows, and no timeout frees them.
ok "a server that allows five connections" up --connections 5 --idle-s 600 --read-s 600 -- step_us=1000
mkfifo hold
"$build/tests/serve/serve_streams" "${url##*:}" 5 x idle < hold > held.out &
holder=$!
exec 3> hold
for _ in $(seq 400); do grep -q '^5 open' held.out && break; sleep 0.05; done
# beyond STATUS CURL-OPTION..: the server may close a connection beyond the limit before it reads the request, so one answer in twenty suffices
beyond() {
	wanted=$1
	shift
	for _ in $(seq 20); do
		code=$(curl -s -o out -D head -w '%{http_code}' --max-time 20 "$@") || [ $? != 28 ] || return 1
		[ "$code" = "$wanted" ] && return 0
	done
	return 1
}
ok "a request on one more is 503" beyond 503 "$url/v1/completions" -d '{"prompt":"Hello you","max_tokens":2}'
ok "in OpenAI's shape" says '{"error":{"message":"5 connections are open, and the limit is 5; .*","type":"service_unavailable_error","param":null,"code":"too_many_connections"}}' out
ok "with Retry-After" grep -qi '^retry-after: 1' head
ok "and the connection ends" grep -qi '^connection: close' head
ok "health is answered all the same" beyond 200 "$url/health"
ok "and its connection ends too" grep -qi '^connection: close' head
ok "hundreds of silent ones are closed" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 300 x silent > silent.out; cat silent.out; grep -q '^300 closed' silent.out"
ok "and health is still answered" beyond 200 "$url/health"
exec 3>&-
wait "$holder"
ok "with the connections free again, requests are served" beyond 200 "$url/v1/completions" -d '{"prompt":"Hello you","max_tokens":2}'
down

ok "an engine that is fast" up --unread-bytes 20000 --read-s 2 -- step_us=0 context=1000000
ok "a client that does not read is cancelled" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 2 '{$chat,\"max_tokens\":900000,\"stream\":true,\"ignore_eos\":true}' unread > unread.out; cat unread.out; grep -q '^2 closed' unread.out"
ok "and counted" until_metric assay_requests_left_total 2
ok "one that does not take a whole answer too" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 1 '{$chat,\"max_tokens\":40000,\"n\":128,\"ignore_eos\":true}' unread > unread.out; cat unread.out; grep -q '^1 closed' unread.out"
down

# The limit for receiving a request ends when the request is there. An answer may become ready at any moment of the server's loop.
ok "answers that take longer than a request may" up --read-s 1 -- step_us=20000
for i in $(seq 24); do
	curl -s -o "late.$i" -w '%{http_code}\n' --max-time 60 "$url/v1/completions" -d "{\"prompt\":\"Hello\",\"max_tokens\":$((60 + i)),\"ignore_eos\":true}" > "late.code.$i" &
	echo $!
done > late.pids
# shellcheck disable=SC2046 # one word per process
wait $(cat late.pids)
ok "all arrive" [ "$(cat late.code.* | sort | uniq -c | tr -s ' ')" = ' 24 200' ]
down

ok "an engine that can be killed" up -- step_us=10000
engine() { pgrep -P "$front" -x stand_in_engine; }
curl -sN "$url/v1/completions" -d "$long" > stream.out &
stream=$!
curl -s -o whole.out -w '%{http_code}' "$url/v1/completions" -d '{"prompt":"Hello you","max_tokens":200,"ignore_eos":true}' > whole.code &
whole=$!
for _ in $(seq 400); do grep -q text stream.out && break; sleep 0.05; done
until_metric assay_requests_running 2
kill -KILL "$(engine)"
wait $stream
ok "a stream ends with the cause" sh -c "tail -2 stream.out | grep -q '{\"error\":{\"message\":\"the engine was lost while it ran this request: the engine.*ended.*\"code\":\"engine_lost\"'"
wait $whole
ok "an answer that had not begun is tried again" [ "$(cat whole.code)" = 200 ]
ok "and counted" [ "$(metric assay_requests_retried_total)" = 1 ]
ok "the engine is back" [ "$(metric assay_engine_starts_total)" = 2 ]
down

ok "an engine that is killed again and again" up -- step_us=500 tokens=30
(while sleep 0.8; do kill -KILL "$(engine)"; done 2> /dev/null) &
killer=$!
ok "every request ends once" sh -c "'$build/tests/serve/serve_streams' ${url##*:} 2000 '{$chat,\"stream\":true}' chaos > chaos.out; code=\$?; cat chaos.out; exit \$code"
kill $killer
ok "and most well" sh -c "grep -q '^[1-9][0-9]* done' chaos.out"
ok "none is left over" until_metric assay_requests_running 0
ok "and the next one is answered" sh -c "for i in 1 2 3 4 5 6 7 8 9; do curl -s $url/v1/completions -d '{\"prompt\":\"Hello\",\"max_tokens\":2}' | grep -q text && exit 0; sleep 0.2; done; exit 1"
down

ok "a full disk" up --request-log /dev/full -- step_us=20000
ok "loses the log only" is 200 /v1/completions '{"prompt":"Hello you","max_tokens":2}'
ok "and says so" says 'cannot write the request log: No space left on device' front.err
curl -sN "$url/v1/completions" -d "$long" > cut.out &
stream=$!
for _ in $(seq 400); do grep -q text cut.out && break; sleep 0.05; done
kill "$front"
ok "a draining server is not ready" sh -c "curl -s $url/ready; ! curl -s $url/ready | grep -q '\"ready\"'"
kill "$front"
wait "$front"
ok "a second TERM ends it at once" [ $? = 0 ]
front=
wait $stream
ok "a server with half-sent requests" up --read-s 600
"$build/tests/serve/serve_streams" "${url##*:}" 3 '{"prompt":"a"}' partial > half.out &
halves=$!
until_metric assay_connections 4 # this one, too
kill "$front"
wait "$halves"
ok "closes them when it drains" says '^3 closed' half.out
wait "$front"
ok "and ends" [ $? = 0 ]
front=

# A disk that is full in the middle of a record: the log has 100 bytes of room, and gets more as its begin is cut off.
printf "trap '' XFSZ\nulimit -f 8\nexec \"\$@\"\n" > small_files
head -c 3995 /dev/zero | tr '\0' x > small.log
echo >> small.log
under="sh small_files"; ok "a small disk" up --request-log small.log -- step_us=1000
under=
two='{"prompt":"Hello you","max_tokens":2}'
ok "loses the log only" eval 'is 200 /v1/completions "$two" && is 200 /v1/completions "$two" && until_metric assay_requests_success_total 2'
tail -n 1 small.log > small.tail
cat small.tail > small.log
ok "and gets room again" eval 'is 200 /v1/completions "$two" && is 200 /v1/completions "$two"'
down
ok "a record was cut" [ "$(wc -c < small.tail)" = 100 ]
ok "that is said once" [ "$(grep -c 'cannot write the request log: File too large' front.err)" = 1 ]
ok "and how many are lost" says 'the request log can be written again; 2 records are lost' front.err
ok "the later ones have lines of their own" [ "$(wc -l < small.log) $(grep -c '^{"time":.*}$' small.log)" = '3 2' ]

ok "an engine that crashes" up -- step_us=1000 crash_after=20 load_ms=300
ok "a request in two crashes is refused" is 503 /v1/completions '{"prompt":"Hello you","max_tokens":60,"ignore_eos":true}'
ok "with the cause" says 'the engine was lost twice while it ran this request.*"code":"engine_lost_twice"' out
ok "no engine is 503" is 503 /v1/completions '{"prompt":"Hello you","max_tokens":1}'
ok "with its cause" says '"code":"engine_unavailable"' out
ok "not ready" sh -c "curl -s -o /dev/null -w '%{http_code}' $url/ready | grep -q 503"
ok "but alive" sh -c "curl -s $url/health | grep -q ok"
down

ok "an engine that hangs" up --hang-s 1 -- step_us=1000 hang_after=20
ok "is given up" is 503 /v1/completions '{"prompt":"Hello you","max_tokens":60,"ignore_eos":true}'
ok "with the cause, twice" says 'the engine has not answered for [0-9.]* s' out
down

ok "an engine with NaN" up -- step_us=1000 fail_after=3
ok "fails the request" is 500 /v1/completions '{"prompt":"Hello you","max_tokens":60}'
ok "and says why" says '"message":"the logits hold NaN","type":"server_error","param":null,"code":"engine_failed"' out
ok "in a stream" is 200 /v1/completions '{"prompt":"Hello you","max_tokens":60,"stream":true}'
ok "too" sh -c "tail -2 out | grep -q '{\"error\":{\"message\":\"the logits hold NaN\"'"
ok "and lives" is 200 /v1/completions '{"prompt":"Hello you","max_tokens":2}'
down

printf '{"time":"cut' > contents
ok "a model that thinks" up --chat-template qwen3 --request-log contents --log-requests 1 -- step_us=1000
say '<think>
Well, hm.
</think>

Yes.'
ok "thinks apart" is 200 /v1/chat/completions "{$chat}"
ok "from what it says" says '"content":"Yes.","refusal":null,"reasoning_content":"Well, hm."' out
ok "as a stream" is 200 /v1/chat/completions "{$chat,\"stream\":true}"
ok "too " [ "$(texts)$(sed -n 's/.*"reasoning_content":"\([^"]*\)".*/\1/p' out | tr -d '\n')" = 'Yes.Well, hm.' ]
echo_prompt
ok "without a thought" is 200 /v1/chat/completions "{$chat,\"chat_template_kwargs\":{\"enable_thinking\":false}}"
ok "the prompt ends with an empty one" says '"content":"user\\nHello\\nassistant\\n<think>\\n\\n</think>\\n\\n","refusal":null}' out
ok "which it has only then" eval 'is 200 /v1/chat/completions "{$chat}" && says "\"content\":\"user.*assistant" out && ! says "<think>" out'
say 'Yes.'
ok "and the answer" is 200 /v1/chat/completions "{$chat,\"chat_template_kwargs\":{\"enable_thinking\":false}}"
ok "has its text alone" says '"message":{"role":"assistant","content":"Yes.","refusal":null}' out
ok "contents are logged when asked for" says '"request":"{\\"messages\\":' contents
ok "those of requests alone" eval '! says "reasoning_content" contents'
say 'Slowly it comes to an end.'
curl -sN "$url/v1/chat/completions" -d "{$chat,\"stream\":true}" > drained.out &
stream=$!
for _ in $(seq 400); do grep -q content drained.out && break; sleep 0.01; done
kill "$front"
wait "$front"
ok "TERM drains" [ $? = 0 ]
front=
ok "a record that an earlier server left incomplete has a line of its own" [ "$(head -n 1 contents) $(grep -c '^{"time":.*}$' contents)" = "{\"time\":\"cut $(($(wc -l < contents) - 1))" ]
wait $stream
ok "and the stream came to its end" says '^data: \[DONE\]' drained.out

if command -v openssl > /dev/null; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout tls.key -out tls.crt -days 2 -subj /CN=localhost > /dev/null 2>&1
	scheme=https; ok "TLS" up --tls-certificate tls.crt --tls-key tls.key -- step_us=1000
	url=https://localhost:${url##*:}
	ok "TLS: it is ready" sh -c "for i in 1 2 3 4 5 6 7 8 9; do curl -s --cacert tls.crt $url/ready | grep -q '\"ready\"' && exit 0; sleep 0.2; done; exit 1"
	post /v1/completions '{"prompt":"Hello you","max_tokens":3,"stream":true}' --cacert tls.crt
	ok "TLS: a stream" says '^data: \[DONE\]' out
	down
fi
finish

#!/bin/sh
# The stub server of the load test: for each fault, what curl receives against the stub's truth file and against
# figures written here; times that follow from the seed; endpoints, bad requests, bad options, ends.
# usage: stub_server.sh BUILD ROOT
set -u
build=$(realpath "$1")/tests/load root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
stub=
trap '[ -z "$stub" ] || kill "$stub"; rm -rf "$tmp"' EXIT

# up OPTION..: the stub; $url
up() {
	rm -f stub.out
	"$build/stub_server" --ttft-ms 2 --itl-ms 1 --truth truth "$@" > stub.out 2> err < /dev/null &
	stub=$!
	for _ in $(seq 1500); do grep -q port stub.out 2> /dev/null && break; sleep 0.02; done
	port=$(sed -n 's/^port //p' stub.out)
	url=http://127.0.0.1:$port
	[ "$port" ]
}
down() { kill "$stub"; wait "$stub"; ended=$?; stub=; [ $ended = 0 ]; }
chat='"messages":[{"role":"system","content":"Be  brief"},{"role":"user","content":[{"type":"text","text":"one two\nthree"}]}]'
stream="{$chat,\"max_tokens\":8,\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
whole="{$chat,\"max_tokens\":8}"
# post BODY [CURL-OPTION..]: body, head, $code (curl's exit code), $status, $connects
post() {
	data=$1
	shift
	: > body; : > head
	status=$(curl -sN -D head -o body -w '%{http_code}' --max-time 60 "$@" "$url/v1/chat/completions" -d "$data")
	code=$?
}
# fault SPEC BODY CURL-CODE STATUS [CURL-OPTION..]: one request to a stub that has this fault; the client's view and the truth agree
fault() {
	spec=$1 data=$2 want="$3 $4"
	shift 4
	up ${spec:+--fault "$spec"} || return 1
	post "$data" "$@"
	down || return 1
	[ "$code $status" = "$want" ] || { echo "curl's code and status: $code $status, expected $want"; return 1; }
	[ "$(field fault)" = "${expected_fault-${spec%%:*}}" ] || { cat truth; return 1; }
}
agrees() { "$build/stub_check" truth "${1:-0}" body; }
field() { sed -n "s/.*\"$1\":\"*\([^,\"}]*\).*/\1/p" truth | head -1; } # of the truth's first line
words() { grep -o '[ "]\(w\|é\)[0-9][0-9]*' body | tr -d ' "' | tr '\n' ' '; }
usage() { grep -o '"usage":{"prompt_tokens":[0-9]*,"completion_tokens":[0-9]*' body | grep -o '[0-9]*' | tr '\n' ' '; }
waited() { awk -v a="$(field "$1")" -v b="$(field "$2")" -v least="$3" 'BEGIN { d = (b - a) / 1e9; print d; exit d < least }'; } # FROM TO SECONDS

expected_fault=none
ok "a stream without a fault" fault '' "$stream" 0 200
ok "agrees with the truth" agrees
ok "every word" [ "$(words)" = 'w1 w2 w3 w4 w5 w6 w7 w8 ' ]
ok "usage" [ "$(usage)" = '5 8 ' ]
ok "the role comes first" sh -c "head -1 body | grep -q '\"delta\":{\"role\":\"assistant\",\"content\":\"\"}'"
ok "its last event" [ "$(tail -2 body)" = 'data: [DONE]' ]
ok "in chunks" says 'Transfer-Encoding: chunked' head
ok "planned times are kept" waited received_ns last_due_ns 0.009
ok "the last token is due after 2 + 7 * 1 ms" [ $(($(field last_due_ns) - $(field received_ns))) = 9000000 ]
# Differences that the checker must find.
cp body good
altered() { sed "$1" good > body && ! agrees; } # SED-SCRIPT
ok "the checker finds a lost word" altered '/"content":" w4"/d'
ok "a changed word" altered 's/ w4"/ w5"/'
ok "a word twice" altered '/"content":" w4"/{p;G;}'
ok "changed usage" altered 's/"completion_tokens":8/"completion_tokens":7/'
ok "changed usage of the prompt" altered 's/"prompt_tokens":5/"prompt_tokens":6/'
ok "no [DONE]" altered '/DONE/d'
ok "no finish" altered '/"length"/d'
ok "broken JSON" altered 's/ w4"}/ w4"/'
ok "an unfinished event" sh -c "head -c -1 good > body; ! '$build/stub_check' truth 0 body"
ok "an error event" altered 's/"object":"chat.completion.chunk"/"error":{}/'
cp good body
ok "a wrong number of the request" sh -c "! '$build/stub_check' truth 1 body"
ok "times out of order" sh -c "sed 's/\"token_ns\":\[[0-9]*/\"token_ns\":[9999999999999999/' truth > truth.bad; ! '$build/stub_check' truth.bad 0 body"

ok "a whole answer" fault '' "$whole" 0 200
ok "agrees with the truth" agrees
ok "its words and usage" [ "$(words)$(usage)" = 'w1 w2 w3 w4 w5 w6 w7 w8 5 8 ' ]
ok "with a length" says 'Content-Length: ' head
ok "no usage unless asked for" fault '' "{$chat,\"max_tokens\":3,\"stream\":true}" 0 200
ok "agrees" agrees
ok "none came" sh -c "! grep -q usage body"
ok "max_completion_tokens wins" fault '' "{$chat,\"max_tokens\":3,\"max_completion_tokens\":2,\"stream\":true}" 0 200
ok "two words" [ "$(words)" = 'w1 w2 ' ]
ok "16 tokens without a limit" fault '' "{$chat}" 0 200
ok "sixteen words" [ "$(words | wc -w)" = 16 ]
unset expected_fault

ok "reset" fault reset:1 "$stream" 56 200
ok "agrees" agrees
ok "it came in mid-stream" [ "$(words | wc -w) $(field end)" = "$(field at) reset" ]
ok "reset of a whole answer" fault reset:1 "$whole" 56 200
ok "agrees" agrees
ok "stall" fault stall:1:0.3 "$stream" 0 200
ok "agrees" agrees
ok "it took so long" waited first_due_ns last_due_ns 0.3
ok "the token after the gap was not sent before" awk -v at="$(field at)" -v first="$(field first_due_ns)" '{ sub(/.*"token_ns":\[/, ""); split($0, t, ","); exit t[at + 1] - first < 0.3e9 }' truth
ok "stall of a whole answer" fault stall:1:0.3 "$whole" 0 200
ok "it took so long" waited received_ns end_ns 0.3
ok "garbage" fault garbage:1 "$stream" 1 000
ok "nothing of it is an answer" [ "$(field status) $(field sent) $(field end)" = '0 0 garbage' ]
ok "a bad chunk" fault bad_chunk:1 "$stream" 56 200
ok "it came in mid-stream" [ "$(words | wc -w) $(field end)" = "$(field at) garbage" ]
ok "a header without end" fault endless_header:1 "$stream" 56 200
ok "nothing of it is an answer" [ "$(field sent) $(field end)" = '0 garbage' ]
ok "bad JSON" fault bad_json:1 "$stream" 0 200
ok "agrees" agrees
ok "one token is lost" [ "$(field sent) $(field lost) $(usage)" = '7 1 5 8 ' ]
ok "bad JSON of a whole answer" fault bad_json:1 "$whole" 0 200
ok "agrees" agrees
ok "redirect" fault redirect:1:4321 "$stream" 0 302
ok "to the other port" says 'Location: http://127.0.0.1:4321/v1/chat/completions' head
ok "usage too high" fault wrong_usage:1 "$stream" 0 200
ok "agrees" agrees
ok "twice as high" [ "$(usage)$(words | wc -w)" = '5 16 8' ]
ok "usage too low" fault wrong_usage:1:0.5 "$whole" 0 200
ok "agrees" agrees
ok "half as high" [ "$(usage)$(words | wc -w)" = '5 4 8' ]
ok "no usage" fault no_usage:1 "$stream" 0 200
ok "agrees" agrees
ok "none came" sh -c "! grep -q usage body"
ok "no usage in a whole answer" fault no_usage:1 "$whole" 0 200
ok "agrees" agrees
ok "a lost token" fault lost_tokens:1 "$stream" 0 200
ok "agrees" agrees
ok "seven of eight" [ "$(words | wc -w) $(usage)" = '7 5 8 ' ]
ok "lost tokens of a whole answer" fault lost_tokens:1:2 "$whole" 0 200
ok "agrees" agrees
ok "fewer words than usage" [ "$(words | wc -w) $(usage)" = "$((8 - $(field lost))) 5 8 " ]
ok "a duplicate" fault duplicate:1 "$stream" 0 200
ok "agrees" agrees
ok "nine events, eight words" [ "$(words | wc -w) $(words | tr ' ' '\n' | sort -u | grep -c w)" = '9 8' ]
ok "several tokens per event" fault multi:1 "$stream" 0 200
ok "agrees" agrees
ok "3, 3 and 2" [ "$(field events) $(words | wc -w) $(grep -c '"content":" *w' body)" = '3 8 3' ]
ok "split events" fault split:1 "$stream" 0 200
ok "agrees" agrees
ok "every word" [ "$(words)" = 'é1 é2 é3 é4 é5 é6 é7 é8 ' ]
ok "split events, as chunks" fault split:1 "$stream" 0 200 --raw
ok "a character is split" [ "$(LC_ALL=C grep -ac "$(printf '"content":" *\303\r')" body)" = 8 ]
ok "closed in mid-token" fault early_close:1 "$stream" 18 200
ok "agrees" agrees
ok "as many words as the truth says" [ "$(words | wc -w)" = "$(field at)" ]
ok "a whole answer closed early" fault early_close:1 "$whole" 18 200
ok "agrees" agrees
ok "no [DONE]" fault no_done:1 "$stream" 0 200
ok "agrees" agrees
ok "none came" sh -c "! grep -q DONE body"
ok "no finish_reason" fault no_finish:1 "$stream" 0 200
ok "agrees" agrees
ok "none came" sh -c "! grep -q length body"
ok "no finish_reason in a whole answer" fault no_finish:1 "$whole" 0 200
ok "agrees" agrees
ok "an error event" fault error_event:1 "$stream" 0 200
ok "agrees" agrees
ok "it came" says '^data: {"error":{"message":"planted error"' body
ok "429" fault 429:1:7 "$stream" 0 429
ok "with Retry-After" says '^Retry-After: 7' head
ok "503" fault 503:1 "$stream" 0 503
ok "without Retry-After" sh -c "! grep -q Retry-After head"
ok "503 with Retry-After" fault 503:1:3 "$stream" 0 503
ok "so long" says '^Retry-After: 3' head
ok "slow headers" fault slow_headers:1:0.3 "$stream" 0 200
ok "agrees" agrees
ok "they took so long" waited received_ns header_ns 0.3
ok "slow headers of a whole answer" fault slow_headers:1:0.3 "$whole" 0 200
ok "agrees" agrees
ok "they took so long" waited received_ns header_ns 0.3
ok "a stream with a length" fault content_length:1 "$stream" 0 200
ok "agrees" agrees
ok "the length is right" [ "$(sed -n 's/^Content-Length: \([0-9]*\).*/\1/p' head)" = "$(wc -c < body)" ]
ok "and no chunks" sh -c "! grep -q chunked head"
ok "HTTP/1.0" fault http10:1 "$stream" 0 200
ok "agrees" agrees
ok "without a length" sh -c "grep -q '^HTTP/1.0 200' head && ! grep -qi 'length\|chunked' head"
ok "HTTP/1.0 of a whole answer" fault http10:1 "$whole" 0 200
ok "agrees" agrees
ok "a huge answer" fault huge:1:3000000 "$stream" 0 200
ok "agrees" agrees
ok "one word" [ "$(field fill_bytes) $(field sent)" = '3000000 1' ]
ok "a huge whole answer" fault huge:1:3000000 "$whole" 0 200
ok "agrees" agrees
ok "100 MB" fault huge:1 "$stream" 0 200
ok "all of it came" [ "$(sed 's/index//g' body | tr -cd x | wc -c)" = 100000000 ]
rm -f body
ok "a huge answer, and a client that leaves" fault huge:1:30000000 "$stream" 28 200 --max-time 2 --limit-rate 10k
ok "is not called complete" [ "$(field end)" = left ]
ok "hang" fault hang:1 "$stream" 28 000 --max-time 2
ok "the client left" [ "$(field end) $(field status)" = 'left 0' ]
ok "cached tokens" fault cached:1:3 "$stream" 0 200
ok "agrees" agrees
ok "three" says '"cached_tokens":3}' body
ok "cached tokens, more than the prompt has" fault cached:1:99 "$whole" 0 200
ok "are all of them" says '"cached_tokens":5}' body
up --rate-most 2
post "$stream"
post "$stream"
down
ok "at most two in a second: the second waits for its turn" awk -F'"first_due_ns":' '{ split($2, n, ","); due[NR] = n[1] } END { exit !(NR == 2 && due[2] - due[1] >= 5e8) }' truth

up --fault refuse:1
post "$stream"
down
ok "refuse" [ "$status" = 000 ]
ok "with no answer or a reset" [ "$code" = 52 -o "$code" = 56 ]
ok "the truth names the connection" says '^{"connection":0,"fault":"refuse",' truth

for name in duplicate multi split no_done error_event content_length; do
	expected_fault=none
	ok "$name cannot be in a whole answer" fault "$name:1" "$whole" 0 200
	ok "and is none" agrees
done
ok "cached cannot be without usage" fault cached:1 "{$chat,\"max_tokens\":3,\"stream\":true}" 0 200
unset expected_fault
ok "a fault with a single token" fault reset:1 "{$chat,\"max_tokens\":1,\"stream\":true}" 56 200
ok "agrees" agrees

up --role-ms 1 --ttft-ms 200
post "$stream"
down
ok "an early role chunk" awk -v role="$(field role_ns)" '{ sub(/.*"token_ns":\[/, ""); split($0, t, ","); exit role >= t[1] }' truth
ok "agrees" agrees
up
curl -sN -o body "$url/v1/completions" -d '{"prompt":["a b","c"],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}'
ok "completions as a stream" says '"object":"text_completion".*"text":" w4"' body
curl -s -o body2 "$url/v1/completions" -d '{"prompt":[1,2,3,4],"max_tokens":2}'
ok "completions, whole" says '"text":"w1 w2".*"prompt_tokens":4' body2
connects=$(curl -s -o /dev/null -o /dev/null -w '%{num_connects} ' "$url/v1/models" "$url/health")
ok "connections are kept" [ "$connects" = '1 0 ' ]
ok "models" sh -c "curl -s $url/v1/models | grep -q '\"id\":\"stub\"'"
gives() { [ "$(curl -s --max-time 60 -o out -w '%{http_code}' "$2" "$3" "$url/$4" ${5:+-d "$5"})" = "$1" ]; } # STATUS CURL-OPTION VALUE PATH [BODY]
ok "no tokenize" gives 404 -H 'A: b' tokenize '{}'
ok "GET of a POST's path" gives 404 -H 'A: b' v1/completions
ok "no JSON" gives 400 -H 'A: b' v1/completions '{'
ok "no object" gives 400 -H 'A: b' v1/completions '[]'
ok "no messages" gives 400 -H 'A: b' v1/chat/completions '{"max_tokens":1}'
ok "no prompt" gives 400 -H 'A: b' v1/completions '{"max_tokens":1}'
ok "no tokens" gives 400 -H 'A: b' v1/completions '{"prompt":"a","max_tokens":0}'
ok "too many tokens" gives 400 -H 'A: b' v1/completions '{"prompt":"a","max_tokens":1000001}'
ok "a body in chunks" gives 411 -H 'Transfer-Encoding:chunked' v1/completions '{"prompt":"a"}'
ok "a body that is too long" gives 413 -H 'Content-Length:99999999999' v1/completions '{"prompt":"a"}'
head -c 70000 /dev/zero | tr '\0' a > long
ok "a header that is too long" gives 431 -A "$(cat long)" health
ok "100 Continue" sh -c "head -c 2000000 /dev/zero | tr '\0' ' ' > big; printf '{\"prompt\":\"a\",\"max_tokens\":1}' >> big; curl -s -D head -o body -H 'Expect: 100-continue' --data-binary @big $url/v1/completions; grep -q '100 Continue' head && grep -q w1 body"
talk() { bash -c 'exec 3<> "/dev/tcp/127.0.0.1/$0" && printf "$1" >&3 && timeout 20 cat <&3' "$port" "$1" > talk.out; }
talk 'GET /health HTTP/1.1\r\n\r\nGET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n'
ok "two requests in one piece" [ "$(grep -ac '^HTTP/1.1 200' talk.out)" = 2 ]
talk 'GET /health HTTP/1.0\r\n\r\n'
ok "a client of HTTP/1.0" says 'Connection: close' talk.out
talk 'GET / / HTTP/1.1\r\n\r\n'
ok "a broken request line" says '^HTTP/1.1 400' talk.out
talk 'GET /health HTTP/1.1\r\nNonsense\r\n\r\n'
ok "a broken field" says '^HTTP/1.1 400' talk.out
ok "a refused client that stays is left" bash -c 'trap "" PIPE; exec 3<> "/dev/tcp/127.0.0.1/$0"; printf "x\\r\\n\\r\\n" >&3; for _ in $(seq 600); do printf y >&3 || exit 0; sleep 0.1; done; exit 1' "$port"
post "$stream"
curl -sN -o cut "$url/v1/chat/completions" -d "{$chat,\"max_tokens\":100000,\"stream\":true}" &
client=$!
for _ in $(seq 1500); do grep -q w3 cut 2> /dev/null && break; sleep 0.02; done
ok "a stream that runs is counted" sh -c "curl -s $url/metrics | grep -q '^vllm:num_requests_running{.*} 1$'"
down
ok "TERM ends it" [ "$ended" = 0 ]
wait $client
ok "the client notices" [ $? = 18 ]
ok "the truth says it was stopped" sh -c "tail -1 truth | grep -q '\"end\":\"stopped\"'"
ok "and the rest is complete" sh -c "[ \$(grep -c '\"end\":\"complete\"' truth) = 4 ]"
ok "a summary" sh -c "tail -1 stub.out | grep -q '\"requests\":5,\"complete\":4,\"clients_left\":0,.*\"cpu_s\":[0-9.]*,.*\"late_us_p99\":[0-9]*'"

for names in vllm:generation_tokens_total sglang:generation_tokens_total tgi_request_generated_tokens_sum llamacpp:tokens_predicted_total \
	assay_generated_tokens_total; do
	set -- vllm sglang tgi llamacpp assay
	for kind in "$@"; do case "$names" in "$kind"[:_]*) up --metrics "$kind" --fault cached:1:2 ;; esac; done
	post "$stream"
	ok "metrics: $names" [ "$(curl -s "$url/metrics" | sed -n "s/^$names\({.*}\)* //p")" = 8 ]
	ok "each has a type" sh -c "curl -s $url/metrics | awk '/^# TYPE/ { t[\$3] = 1 } !/^#/ { n = \$1; sub(/{.*/, \"\", n); b = n; sub(/_(bucket|sum|count)\$/, \"\", b); if (!t[n] && !t[b]) bad = 1 } END { exit bad || NR < 8 }'"
	down
done

# Shares, seeds
many() { curl -s -o /dev/null "$url/v1/chat/completions?[1-$1]" -d "{$chat,\"max_tokens\":3,\"stream\":true}"; }
up --ttft-ms 0 --itl-ms 0 --fault no_done:0.1 --fault lost_tokens:0.25
many 200
down
count() { grep -c "\"fault\":\"$1\"" truth; }
ok "shares are nearly exact: 10 %" [ "$(count no_done)" -ge 18 -a "$(count no_done)" -le 22 ]
ok "25 %" [ "$(count lost_tokens)" -ge 48 -a "$(count lost_tokens)" -le 52 ]
ok "all 200 are there, once" [ "$(sed 's/{"request":\([0-9]*\).*/\1/' truth | sort -un | wc -l)" = 200 ]
up --ttft-ms 0 --itl-ms 0 --fault 503:0.2 --burst 10
many 200
down
ok "storms come in bursts" sh -c "sed 's/.*\"fault\":\"\([^\"]*\).*/\1/' truth | uniq -c | awk '\$2 == 503 { if (\$1 % 10) exit 1; n += \$1 } END { exit n < 30 || n > 50 }'"
planned() { sed 's/.*"key":"\([^"]*\).*"received_ns":\([0-9]*\),"first_due_ns":\([0-9]*\),"last_due_ns":\([0-9]*\).*/\1 \2 \3 \4/' truth | awk '{ print $1, $3 - $2, $4 - $2 }'; }
for jitter in uniform:0.5 lognormal:0.4; do
	up --jitter "$jitter" --seed 7
	many 40; down; planned > one
	up --jitter "$jitter" --seed 7
	many 40; down; planned > two
	cp one "one.$jitter"
	up --jitter "$jitter" --seed 8
	many 40; down; planned > three
	ok "$jitter: the same seed, the same times" cmp one two
	ok "$jitter: another seed, others" sh -c "! cmp -s one three"
	ok "$jitter: times differ" [ "$(cut -d ' ' -f 2 one | sort -u | wc -l)" = 40 ]
	ok "$jitter: the mean stays" sh -c "awk '{ s += \$2 } END { m = s / NR / 1e6; print m; exit m < 1.6 || m > 2.4 }' one"
done
up --jitter lognormal:1 --ttft-ms 2 --itl-ms 0
many 300; down; planned | cut -d ' ' -f 2 | sort -n > one
ok "lognormal: the mean is the option's" awk '{ s += $1 } END { m = s / NR / 2e6; print m; exit m < 0.8 || m > 1.2 }' one
ok "the median is below it by exp(sigma^2 / 2)" awk 'NR == 150 { m = $1 / 2e6; print m; exit m < 0.5 || m > 0.72 }' one
ok "uniform: within its bounds" awk '$2 < 1e6 || $2 > 3e6 { exit 1 }' one.uniform:0.5
up --by-content --fault no_done:0.5 --jitter uniform:0.5
for text in a b c d e f; do post "{\"prompt\":\"\",\"messages\":[{\"content\":\"$text\"}],\"max_tokens\":3,\"stream\":true}"; done
down; planned | sort > one; sed 's/.*"key":"\([^"]*\).*"fault":"\([^"]*\).*/\1 \2/' truth | sort > one.faults
up --by-content --fault no_done:0.5 --jitter uniform:0.5
for text in f d b a c e; do post "{\"prompt\":\"\",\"messages\":[{\"content\":\"$text\"}],\"max_tokens\":3,\"stream\":true}"; done
down; planned | sort > two; sed 's/.*"key":"\([^"]*\).*"fault":"\([^"]*\).*/\1 \2/' truth | sort > two.faults
ok "by content: the order does not matter for times" cmp one two
ok "nor for faults" cmp one.faults two.faults
ok "six keys" [ "$(cut -d ' ' -f 1 one | sort -u | wc -l)" = 6 ]

# Many streams
up --ttft-ms 30 --itl-ms 20
ok "100 streams at once" "$build/stub_client" "$port" 200 1 10 arrivals
down
ok "no token came before it was sent" "$build/stub_check" --arrivals truth arrivals
ok "the summary counts the same" sh -c "tail -1 stub.out | grep -q '\"requests\":200,\"complete\":200,.*\"chunks\":2000,\"tokens\":2000'"
ok "an arrival before its time is noticed" sh -c "sed 's/\[[0-9]*/[1/' arrivals > bad; ! '$build/stub_check' --arrivals truth bad"
up --threads 3 --ttft-ms 30 --itl-ms 20
ok "three threads" "$build/stub_client" "$port" 200 1 10 arrivals
down
ok "agree with the truth" "$build/stub_check" --arrivals truth arrivals
ok "every request has a number" [ "$(sed 's/{"request":\([0-9]*\).*/\1/' truth | sort -un | tail -1)" = 199 ]
(ulimit -n 30; exec "$build/stub_server" --ttft-ms 2000 > few.out 2> err < /dev/null) &
stub=$!
for _ in $(seq 1500); do grep -q port few.out && break; sleep 0.02; done
url=http://127.0.0.1:$(sed -n 's/^port //p' few.out)
ok "without descriptors it closes connections" sh -c "! '$build/stub_client' ${url##*:} 1000 0.1 1 > few.client; grep -q '\"failed\":[1-9]' few.client"
ok "and serves on" sh -c "for i in 1 2 3 4 5; do curl -s -o /dev/null $url/health && exit 0; sleep 0.5; done; exit 1"
down

# Options
refused() { # MESSAGE CODE OPTION..
	message=$1 want=$2
	shift 2
	timeout 20 "$build/stub_server" "$@" > out 2> err < /dev/null
	[ $? = "$want" ] && says "$message" err
}
ok "an unknown fault" refused 'does not accept nothing:1' 64 --fault nothing:1
ok "a share over 1" refused 'does not accept stall:2' 64 --fault stall:2
ok "no share" refused 'does not accept stall' 64 --fault stall
ok "a value that is no number" refused 'does not accept stall:1:x' 64 --fault stall:1:x
ok "something after the share" refused 'does not accept stall:1x' 64 --fault stall:1x
ok "shares that add up to more than 1" refused 'add up to 1.2' 64 --fault stall:0.6 --fault split:0.6
ok "an unknown jitter" refused 'jitter does not accept' 64 --jitter normal:1
ok "jitter without a size" refused 'jitter does not accept' 64 --jitter uniform
ok "jitter that is too wide" refused 'jitter does not accept' 64 --jitter uniform:1.5
ok "unknown names of metrics" refused 'metrics does not accept' 64 --metrics x
ok "a model's name with a quote" refused 'model does not accept' 64 --model 'a"b'
ok "a port that is none" refused 'port does not accept' 64 --port 70000
ok "no threads" refused 'threads does not accept' 64 --threads 0
ok "an unknown option" refused 'unrecognized option' 64 --nothing
ok "a word" refused 'is not an option' 64 word
ok "a truth file that cannot be made" refused 'cannot open /nowhere/x' 1 --truth /nowhere/x
up
ok "a port that is taken" refused "cannot listen at port $port" 1 --port "$port"
down
up --truth /dev/full
post "$stream"
down
ok "a truth file that is full is an error" [ "$ended" = 1 ]
ok "with a message" says 'cannot write the truth file: No space left' err
ok "help names every fault" sh -c "'$build/stub_server' --help | grep -q 'slow_headers .*(default VALUE 1)'"
finish

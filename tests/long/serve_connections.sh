#!/bin/bash
# The HTTP front end under many connections: 10,000 that do nothing, 10,000 streams at once, and 10,000 requests whose clients
# leave at random while the engine is killed. Its memory grows for three rounds, as the allocator's arenas fill, and then stays.
# usage: serve_connections.sh BUILD ROOT [COUNT]
set -u
build=$(realpath "$1") root=$(realpath "$2") count=${3:-10000}
. "$root/tests/end2end/tap.sh"
scratch
front=
trap '[ -z "$front" ] || kill "$front"; rm -rf "$tmp"' EXIT
files=$(ulimit -Hn)
if [ "$files" != unlimited ] && [ "$files" -lt $((count + 200)) ]; then echo "1..0 # SKIP the limit of open files is $files" && exit 0; fi
mkdir model && cp "$root/tests/data/tokenizer/qwen.json" model/tokenizer.json
echo '{"eos_token": "<|im_end|>"}' > model/tokenizer_config.json
ASSAY_MODULE_DIR=$build/src/serve
export ASSAY_MODULE_DIR
"$build/tests/serve/serve_front" model --chat-template qwen2.5 --queue 16384 --connections $((count + 50)) -- \
	"$build/tests/serve/stand_in_engine" step_us=2000 tokens=30 > port.out 2> front.err < /dev/null &
front=$!
for _ in $(seq 300); do grep -q port port.out && break; sleep 0.05; done
for _ in $(seq 300); do grep -q ready front.err && break; sleep 0.05; done
port=$(sed -n 's/^port //p' port.out)
streams=$build/tests/serve/serve_streams
chat='{"messages":[{"role":"user","content":"Hello"}],"stream":true}'
memory() { awk '/VmRSS/ { print $2 }' "/proc/$(pgrep -P "$front" -x serve_front)/status"; }
answers() { curl -s --max-time 10 "http://127.0.0.1:$port/v1/completions" -d '{"prompt":"Hello","max_tokens":2}' | grep -q '"text"'; }
all_streams() { "$streams" "$port" "$count" "$chat" > out; cat out; grep -q "^$count done" out; }
idle_beside() {
	mkfifo hold
	"$streams" "$port" "$count" x idle < hold > out &
	exec 9> hold
	for _ in $(seq 300); do grep -q open out && break; sleep 0.1; done
	grep -q "^$count open" out && answers
	code=$?
	exec 9>&-
	rm hold
	wait $!
	return $code
}
chaos() {
	(while sleep 1; do pkill -KILL -P "$front" -x stand_in_engine; done) &
	killer=$!
	"$streams" "$port" "$count" "$chat" chaos > out
	code=$?
	kill "$killer"
	cat out
	sleep 1
	return $code
}
ok "$count idle connections, and it answers" idle_beside
ok "$count streams at once" all_streams
ok "requests of clients that leave, engines that are killed" chaos
for _ in 1 2; do all_streams > /dev/null; done
before=$(memory)
for _ in 1 2; do all_streams > /dev/null; done
ok "again: streams" all_streams
ok "again: clients that leave" chaos
after=$(memory)
echo "# memory: $before KiB, then $after KiB"
ok "memory stays" [ "$after" -lt $((before * 21 / 20 + 4096)) ]
ok "it still answers" answers
kill "$front"
wait "$front"
ok "it ends well" [ $? = 0 ]
front=
finish

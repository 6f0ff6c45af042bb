#!/bin/sh
# tools/load-llama-server against the stub server, which prints llama.cpp's names of metrics. usage: load_llama_server.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/load_bed.sh"
"$assay" make-model --shape tiny --seed 3 --out tiny > out 2> err || { cat err; exit 1; }
# fails CODE WORDS ARG..
fails() {
	want=$1 words=$2
	shift 2
	"$root/tools/load-llama-server" "$assay" "$@" > out 2> err
	code=$?
	cat out >> err
	[ $code = "$want" ] && says "$words" err
}
ok "no folder" fails 64 'usage: load-llama-server' http://127.0.0.1:1
ok "a model that is not there" fails 64 'none.gguf is not there' http://127.0.0.1:1 none.gguf result
ok "no number of seconds" fails 64 'x is no number' http://127.0.0.1:1 tiny result x
ok "none of these leaves a folder" [ ! -e result ]
ok "a server that is not there" fails 1 "paced: exit code 2" http://127.0.0.1:1 tiny gone
up
mkdir bin # a server without metrics looks to assay as if it read none
printf '#!/bin/sh\nexec %s "$@" --metrics none\n' "$assay" > bin/assay
chmod +x bin/assay
whole=$assay assay=$tmp/bin/assay
ok "a server without metrics" fails 2 'start the server with --metrics' "$url" tiny other 2
assay=$whole
up --metrics llamacpp
ok "a server with them" fails 0 'sweep: exit code' "$url/" tiny result 2
ok "has a row for each load" [ "$(grep -c '^| \(1 request\|4 users\|sweep\)' result/README.md)" = 3 ]
ok "with rates and times" eval 'grep -q "^| 4 users | [0-9.]* | [0-9.]* | [0-9.]* | " result/README.md'
ok "and the readings of the server" says '"generated_tokens"' result/server.jsonl
ok "and the files of each run" eval 'for run in paced users sweep; do [ -s result/$run.md ] && [ -s result/$run.json ] || exit 1; done'
finish

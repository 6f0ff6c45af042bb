# A stub server and runs of `assay load` against it, for the scripts beside it. They set $build and $root first.
assay=$build/src/assay
. "$root/tests/end2end/tap.sh"
ASSAY_MODULE_DIR=$build/src/load
export ASSAY_MODULE_DIR
scratch
stub=
trap 'down; rm -rf "$tmp"' EXIT
runs=0

# up OPTION..: a stub server; $url
up() {
	down
	rm -f port
	"$build/tests/load/stub_server" --truth truth "$@" > port 2> stub.err &
	stub=$!
	for _ in $(seq 200); do grep -q '^port' port && break; sleep 0.05; done
	url=http://127.0.0.1:$(sed -n 's/^port //p' port)
}
down() {
	[ -z "$stub" ] || { kill "$stub" 2> /dev/null; wait "$stub" 2> /dev/null; }
	stub=
}
# load CODE OPTION..: a short run; its results are in out, its directory is $dir
load() {
	want=$1
	shift
	runs=$((runs + 1)) dir=run$runs
	expect "$want" load "$url" --out "$dir" --no-telemetry --idle 0 --json --input 20 --output 8 "$@"
}
# The same for a good server. On a busy machine the client itself may be late, which it has to say; that is no fault of the run.
sound() {
	load 0 "$@" && return 0
	[ "$code" = 2 ] && says '"kept": false' out &&
		! grep -B3 '"kept": false' out | grep '"name"' | grep -qv '"client_lag_p99_s"\|"receive_late_p99_s"\|"client_cpu_share"\|"send_deviation"'
}
# Limits are missed: the run fails, or it is not trusted because the client itself was late.
missed() {
	load 1 "$@" || { [ "$code" = 2 ] && says '"untrusted": \[' out; }
	says '"slo_met": 0' out
}
# value NAME: a figure of the last run
value() { sed -n 's/^ *"'"$1"'": \([^,]*\),*$/\1/p' out | head -n 1; }
# holds EXPRESSION: with figures as words
holds() { awk "BEGIN { exit !($1) }"; }
is_near() { holds "$1 > 0 && ($1 / $2 - 1) ^ 2 < $3 ^ 2"; } # VALUE EXPECTED SHARE
# trace COUNT STEP_MS: requests at equal distances in trace.jsonl, each with a length of its own, by which `join` finds it in the truth
trace() {
	for i in $(seq 0 $(($1 - 1))); do echo "{\"timestamp\": $(($2 * i)), \"input_length\": $((30 + i)), \"output_length\": 8}"; done > trace.jsonl
}
# join: the requests of the last run beside the truth of its stub, which must be down; `joined` has the columns of join.awk, in the order of
# the schedule
join() {
	awk -v epoch="$(sed -n 's/.*"epoch_ns":\([0-9]*\).*/\1/p' "$dir/journal.jsonl")" -f "$root/tests/load/join.awk" "$dir/requests.jsonl" truth | sort -n > joined
}
refuses() { # CODE WORDS OPTION..
	want=$1 words=$2
	shift 2
	expect "$want" load "$@" && says "$words" err
}

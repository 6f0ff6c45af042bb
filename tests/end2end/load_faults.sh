#!/bin/sh
# `assay load` against a server with faults: each request's error beside the fault that the stub planted in it, storms of refusals, odd but correct
# answers, answers that are not to be trusted, and servers that are not ready.
# usage: load_faults.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/load_bed.sh"
trace 100 20

# against OPTION..: the options of `assay load` are in $options; the run's exit code is $code
against() {
	up --ttft-ms 20 --itl-ms 5 "$@"
	# shellcheck disable=SC2086
	load 0 --trace trace.jsonl --warmup 0 $options
	down
	join
}
# have FAULT=ERROR..: each request with this fault ended with this error, `-` for none; there is one of each at least; requests without a fault are
# answered; and the run's counts of errors are those of its requests
have() {
	for pair in "$@" none=-; do
		awk -v fault="${pair%=*}" -v want="${pair#*=}" '$2 == fault { n++; if ($3 != want) { print; bad = 1 } } END { exit bad || !n }' joined || { echo "$pair"; return 1; }
		[ "${pair#*=}" = - ] || holds "$(value "errors_${pair#*=}") == $(awk -v want="${pair#*=}" '$3 == want { n++ } END { print n + 0 }' joined)" || { echo "number of ${pair#*=}"; return 1; }
	done
	[ "$(awk '{ print $2 }' joined | sort -u | wc -l)" = $(($# + 1)) ] # no fault is without its line here
}
whole() { ! awk -v fault="$1" '$2 == fault && ($6 != 8 || $10 != 8 || $11 != $7)' joined | grep .; } # FAULT: with all tokens and events

# 1. Errors
options='--timeout 4'
against --seed 4 --fault 429:0.06 --fault 503:0.06 --fault redirect:0.06 --fault reset:0.06 --fault early_close:0.06 --fault garbage:0.06 \
	--fault bad_chunk:0.06 --fault endless_header:0.06 --fault stall:0.06:9 --fault hang:0.06 --fault error_event:0.06 --fault bad_json:0.06
ok "a server with many faults fails the run" [ "$code" != 0 ]
ok "each request has the error of its fault" have 429=limited 503=unavailable redirect=redirect reset=reset early_close=cut garbage=garbage bad_chunk=garbage \
	endless_header=garbage stall=timeout hang=timeout error_event=server bad_json=garbage
ok "what failed is counted once" holds "$(value failed) == $(awk '$3 != "-" { n++ } END { print n }' joined)"
options=--no-stream
against --seed 2 --fault 503:0.1 --fault reset:0.1 --fault early_close:0.1 --fault bad_json:0.1
ok "answers that are not streamed" have 503=unavailable reset=reset early_close=cut bad_json=garbage
options=
against --seed 3 --burst 25 --fault 429:0.25 --fault 503:0.25
ok "storms: every answer for half a second is a refusal" have 429=limited 503=unavailable
ok "one after the other" awk '$2 != was { changes++; was = $2 } END { exit changes > 5 }' joined
ok "requests keep to the schedule" awk 'NR == 1 { first = $12 } ($12 - first - 20 * (NR - 1)) ^ 2 > 1e-10 { bad = 1 } END { exit bad || NR != 100 }' joined
up --fault refuse:0.3
ok "connections that are closed at once" load 1 --users 8 --duration 2 --warmup 0
down
ok "are lost or cannot be made" holds "$(value errors_reset) + $(value errors_connect) > 0 && $(value failed) == $(value errors_reset) + $(value errors_connect)"
ok "the others are answered" holds "$(value answered) > 10"

# 2. Correct answers in an odd form
against --seed 5 --fault split:0.15 --fault content_length:0.15 --fault http10:0.15 --fault slow_headers:0.15:0.3 --fault no_usage:0.15
ok "odd answers are answers" have split=- content_length=- http10=- slow_headers=- no_usage=-
ok "events in four pieces, one cut within a character, are whole" whole split
ok "a stream with a length" whole content_length
ok "HTTP/1.0, whose connection ends the answer" whole http10
ok "a header that comes slowly" whole slow_headers
# of the others, a busy machine may delay some
ok "delays the first token" awk '$2 == "slow_headers" && $15 < 300 { bad = 1 } $2 == "none" { n++; late += $15 > 250 } END { exit bad || late > n / 2 }' joined
ok "answers without usage are told" says 'did not report usage for some answers' out
ok "each by itself" awk '($4 ~ /no_usage/) != ($2 == "no_usage") { bad = 1 } END { exit bad }' joined
# A server that closes connections after an answer without saying so, as llama.cpp's does: the next request on one is sent again.
up --fault stale:0.5
ok "connections that the server has closed" sound --users 4 --duration 2 --warmup 0
ok "lose no request" holds "$(value failed) == 0 && $(value answered) > 10"
ok "which are sent again" holds "$(value resent) > 0"
ok "and the report says so" says 'closed connections after an answer without saying so' out
ok "as does each request" says '"flags":\["resent"\]' "$dir/requests.jsonl"

# 3. Answers that are complete, and not to be trusted
suspect() { # CHECK OPTION..: this check does not hold
	check=$1
	shift
	load 2 --rate 40 --duration 1 --warmup 0 "$@" && grep -A3 "\"name\": \"$check\"" out | grep -q '"kept": false'
}
up --fault no_done:1
ok "streams without an end mark" suspect no_done
up --fault no_finish:1
ok "answers without a reason for their end" suspect no_finish
up --fault cached:1:18
ok "a prefix cache that should be cold" suspect cache_share
ok "is expected if the user says so" sound --rate 40 --duration 1 --warmup 0 --warm-cache

# 4. Servers that are not ready, or are none
up --loading 3
ok "a server that still loads its model is waited for" sound --rate 10 --duration 1 --warmup 0
ok "which is told" says 'waiting at most 300 s until it is ready' err
up --loading 1000
ok "not for ever" refuses 2 'status 503' "$url" --rate 10 --duration 1 --ready-timeout 0.5 --out r-loading --no-telemetry --idle 0
up --fault 429:1
ok "a server that limits every request is not wrong use" refuses 2 'status 429: planted refusal' "$url" --rate 10 --duration 1 --ready-timeout 0.5 --out r-limited --no-telemetry --idle 0
ok "it was asked more than once" eval 'down; [ "$(wc -l < truth)" -gt 1 ]'
up --fault huge:1
ok "a first answer that is too large" refuses 2 'the answer is larger than 16 MB' "$url" --rate 10 --duration 1 --out r-huge --no-telemetry --idle 0
down
finish

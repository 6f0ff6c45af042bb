#!/bin/sh
# The figures of `assay load` beside the truth of the stub server, which stamps each token when it sends it: constant times, jitter, stalls,
# several tokens in an event, lost tokens, wrong usage. The truth has the stub's own delays, so a slow machine changes both alike.
# usage: load_truth.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/load_bed.sh"
count=100 step=25
trace $count $step

# column NUMBER: this column of all requests; a list has commas between
column() { awk -v c="$1" '{ gsub(",", "\n", $c); print $c }' joined; }
# quantile SHARE, of the numbers in the input, between neighbours as the program does it
quantile() { sort -g | awk -v p="$1" '{ x[NR] = $1 } END { at = p * (NR - 1) + 1; i = int(at); print x[i] + (at - i) * (x[i < NR ? i + 1 : i] - x[i]) }'; }
seconds() { awk '{ print $1 / 1e3 }'; }
# same FIGURE COLUMN [SHARE]: a figure of the run is within 1 % of that of the truth in this column (median by default)
same() {
	is=$(value "$1") true=$(column "$2" | quantile "${3:-0.5}" | seconds)
	echo "$1: $is, true $true"
	is_near "${is:-0}" "$true" 0.01
}
# 13: TTFT is from the client's send, so that must be right by itself: never after the stub's receipt, and soon before it.
figures() { # NAME of the gaps
	same ttft_send_p50_s 14 && same ttft_p50_s 16 && same e2e_send_p50_s 19 && same "$1"_p50_s 23 &&
		holds "$(column 13 | quantile 0) > 0 && $(column 13 | quantile 0.5) < 0.01 * $(column 14 | quantile 0.5)"
}
tpot() { awk '{ $17 = $17 / ($9 - 1) } 1' joined > per_token; mv per_token joined; same tpot_p50_s 17; }
# No token is read before it was sent; a gap is rounded to microseconds.
causal() { holds "$(column 21 | grep -v '^-' | quantile 0) > -0.01"; }
# measure GAPS CODE OPTION.. : a run against a stub with these options, and its figures. On a busy machine client or stub may be late for most
# of the requests, so it has six attempts. The client may have to say that it was late itself (2).
measure() {
	gaps=$1 want_code=$2
	shift 2
	for attempt in 1 2 3 4 5 6; do
		up --ttft-ms 200 --itl-ms 40 "$@"
		load "$want_code" --trace trace.jsonl --warmup 0 || [ "$code" = 2 ] || return 1
		down
		join
		figures "$gaps" && return 0
		echo "attempt $attempt"
	done
	return 1
}
total() { awk -v c="$1" '{ s += $c } END { print s }' joined; }
counts() { # FIGURE EXPECTED
	echo "$1: $(value "$1"), expected $2"
	holds "$(value "$1") == $2"
}
doubt() { grep -A3 "\"name\": \"$1\"" out | grep -q '"kept": false'; } # CHECK

ok "constant times: medians within 1 %" measure itl 0
ok "each request is there" [ "$(grep -c . joined)" = $count ]
ok "and answered" counts answered $count
ok "with all its tokens" counts output_tokens "$(total 6)"
ok "no token is read before it is sent" causal
ok "requests are due when the trace says" awk -v step=$step 'NR == 1 { first = $12 } ($12 - first - step * (NR - 1)) ^ 2 > 1e-10 { bad = 1 } END { exit bad }' joined
ok "time per token" tpot
# A wrong client must not pass.
cp out good
doubled() { awk -v name="$1" '$1 ~ "^\"" name "_" { sub(",", "", $2); $0 = "  " $1 " " 2 * $2 "," } 1' good > out; ! figures itl; } # NAME
ok "a doubled time to first token would be seen" doubled ttft_send
ok "also from the schedule" doubled ttft
ok "a doubled time between tokens" doubled itl
ok "a doubled time of an answer" doubled e2e_send

ok "uniform jitter" measure itl 0 --jitter uniform:0.5
ok "its 90th percentile" same ttft_send_p90_s 14 0.9
ok "lognormal jitter" measure itl 0 --jitter lognormal:0.4
ok "its 90th percentile" same ttft_send_p90_s 14 0.9
ok "time per token" tpot

ok "stalls leave the medians" measure itl 0 --fault stall:0.2:0.5
ok "each is seen once, in its request" awk '{ n = split($24, gap, ","); long = 0; for (i = 1; i <= n; i++) long += gap[i] > 500; if (long != ($2 == "stall")) bad = 1; all += long }
	END { exit bad || all < 15 }' joined
ok "the slow answers" same e2e_send_p90_s 19 0.9

ok "two tokens in each event: gaps of events" measure chunk_gap 0 --fault multi:1:2
ok "tokens are those of the server" counts output_tokens "$(total 6)"
ok "events too" counts chunks "$(total 7)"
ok "two in an event" counts tokens_per_chunk 2
ok "time per token" tpot

ok "lost tokens leave the medians" measure itl 0 --fault lost_tokens:0.05:1
ok "the streams that lost some are counted" counts lost_tokens "$(awk '$8 > 0 { n++ } END { print n }' joined)"
ok "and told" says 'have fewer events than the server reports tokens' out

ok "usage that is too high leaves the times" measure chunk_gap 2 --fault wrong_usage:0.1:3
ok "and is not trusted" doubt usage_over_asked
ok "each such answer is counted" counts usage_over_asked "$(grep -c wrong_usage joined)"
ok "usage that is too low leaves the times" measure chunk_gap 2 --fault wrong_usage:0.1:0.5
ok "and is not trusted" doubt usage_under_events
ok "each such answer is counted" counts usage_under_events "$(grep -c wrong_usage joined)"
ok "events that come twice leave the times" measure itl 2 --fault duplicate:0.05
ok "and are not trusted" doubt duplicates
ok "each such stream is counted" counts duplicates "$(grep -c duplicate joined)"
finish

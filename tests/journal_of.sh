# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that read a recorded run's journal as text.
# journal_of RUN: its lines on stdout; recorded journals are compressed.
journal_of() {
	if [ -f "$1/journal.jsonl" ]; then
		cat "$1/journal.jsonl"
	else
		zstd -q -d -c "$1/journal.jsonl.zst"
	fi
}
# scaled_rates FACTOR: a journal with each rate of its results times FACTOR
scaled_rates() {
	awk -v factor="$1" '
		/"type":"result"/ { while (match($0, /"(flop_rate|byte_rate|rate_[a-z]*)":[0-9.e+]+/)) {
			split(substr($0, RSTART, RLENGTH), part, ":")
			printf "%s%s:%.10g", substr($0, 1, RSTART - 1), part[1], part[2] * factor
			$0 = substr($0, RSTART + RLENGTH) } }
		{ print }'
}

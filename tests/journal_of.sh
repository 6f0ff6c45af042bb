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

# A small model, rows and configurations, and what a training run said, for the scripts beside it, which take it in with `.` after tap.sh.
train_inputs() { # in $tmp: skips the test if this build cannot tokenize
	expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
	if ! expect 0 tokens model x && says 'built without tokenizers' err; then
		echo "1..0 # SKIP this build has no tokenizers"
		exit 0
	fi
	# Rows of many lengths, so that ranks are dealt unequal ones.
	for i in $(seq 32); do
		echo '{"messages":[{"role":"user","content":"town '"$i $(printf "%$((i * 7 % 40))s" x)"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
	done > rows.jsonl
	head -n 6 rows.jsonl > held.jsonl
}
# train_config NAME DEVICE LINES..: lines are added to its training
train_config() {
	name=$1 device=$2
	shift 2
	cat > "$name" << CONFIG
model: {name_or_path: $tmp/model, chat_template: qwen2.5}
lora: {r: 8, alpha: 16}
data: {train: $tmp/rows.jsonl, eval: $tmp/held.jsonl, max_seq_length: 160}
training:
  device: $device
  tune: false
  learning_rate: 1e-3
  global_batch_size: 4
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
losses() { grep '"type":"step"' "$1" | tr ',{' '\n\n' | sed -n 's/^"loss"://p'; } # FILE: with the lines of --json
journal_values() { # NAME RUN: of its steps or evaluations
	sed -n 's/.*"source":"train".*"'"$1"'":{[^}]*"v":\[\([-0-9.e+]*\)\].*/\1/p' "$2/journal.jsonl"
}
journal_losses() { journal_values loss "$1"; } # RUN
near() { # FILE FILE COUNT SHARE: so many losses, equal within this share
	paste "$1" "$2" | awk -v n="$3" -v share="$4" '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > share * $1) bad = 1 } END { exit bad || NR != n }'
}

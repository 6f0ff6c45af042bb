# Training on GPU ranks that are not there: a tiny model in model, rows in rows.jsonl and held.jsonl, and what makes and compares runs. For the
# scripts beside it, which take it in with `.` after gpu_ranks.sh. It ends a script whose program has no kernels or no tokenizers.
if ! says '^train_rows ' "$root/src/kernel/list" || ! "$assay" list kernels | grep -q train_rows; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi
expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
for i in $(seq 24); do
	echo '{"messages":[{"role":"user","content":"town '"$i $(printf "%$((i * 7 % 14))s" x)"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
head -n 4 rows.jsonl > held.jsonl
config() { # NAME LINES..: lines are added to its training
	name=$1
	shift
	cat > "$name" << CONFIG
model: {name_or_path: model, chat_template: chatml${four:-}}
$([ "${full:-no}" = yes ] || echo "lora: {r: 8, alpha: 16}")
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 64}
training:
  device: gpu
  tune: false
  learning_rate: 1e-3
  global_batch_size: 4
  max_steps: 4
  eval_steps: 2
$([ "${full:-no}" = no ] || printf '  full_finetuning: true\n  bucket_cap_mb: 0.1\n')
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
losses() { grep '"type":"step"' "$1" | tr ',{' '\n\n' | sed -n 's/^"loss"://p'; }
near() { paste one two | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-3 * $1) bad = 1 } END { exit bad || NR != 4 }'; }
ranked() { # RANKS WORDS..: as a launcher starts them; rank 0's words in out, those of all in err
	ranks=$1
	port=$((port + 10))
	shift
	for ((r = 0; r < ranks; r++)); do
		(
			env ASSAY_SIZE="$ranks" ASSAY_LOCAL_SIZE="$ranks" ASSAY_HOST=127.0.0.1 ASSAY_PORT=$port ASSAY_JOB=job$port \
				ASSAY_RANK="$r" ASSAY_LOCAL_RANK="$r" ${own[$r]:-} \
				timeout "${patience:-120}" "$assay" train "$@" > "out.$r" 2> "err.$r"
			echo $? > "code.$r"
		) &
	done
	wait
	cp out.0 out
	cat err.* > err
}

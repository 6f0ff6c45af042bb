# Training of a tiny model by ranks under Open MPI's mpirun, for the scripts beside it, which begin with it: the model, its rows, and what
# two runs are compared by. Takes the arguments that mpirun.sh takes.
. "$(dirname "$0")/mpirun.sh"
only_open_mpi
assay=$program
export CUDA_VISIBLE_DEVICES=

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
# divided_heads: the same matrices as 12 heads of 16 columns, which four ranks can divide
divided_heads() {
	sed -i 's/"num_attention_heads": 6/"num_attention_heads": 12/; s/"num_key_value_heads": 2/"num_key_value_heads": 4/; s/"head_dim": 32/"head_dim": 16/' \
		model/config.json
}
# rows COUNT SPREAD: rows.jsonl, of many lengths, so that ranks are dealt unequal ones. Their own system message is shorter than the 80 tokens that the
# chat template adds to a row without one.
rows() {
	for i in $(seq "$1"); do
		echo '{"messages":[{"role":"system","content":"s"},{"role":"user","content":"town '"$i $(printf "%$((i * 7 % $2))s" x)"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
	done > rows.jsonl
}
# train CODE RANKS WORDS..: `out` has rank 0's words, `err` those of all. Telemetry starts two more programs beside each rank, so a test that needs it
# sets `telemetry` to nothing.
train() {
	want=$1 ranks=$2
	shift 2
	if [ "$ranks" = 1 ]; then
		"$assay" train "$@" ${telemetry---no-telemetry} > out 2> err
	else
		started "$ranks" "$assay" train "$@" ${telemetry---no-telemetry} > out 2> err
	fi
	code=$?
	[ $code = "$want" ]
}
# Steps of a run that shows whether losses drift apart.
many=12
[ "${ASSAY_TEST_LONG:-no}" = no ] || many=50
losses() { grep '"type":"step"' "$1" | tr ',{' '\n\n' | sed -n 's/^"loss"://p'; }
near() { # FILE FILE [LINES]: the first within 1e-6, all within 1e-4, as shares
	paste "$1" "$2" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > (NR == 1 ? 1e-6 : 1e-4) * $1) bad = 1 } END { exit bad || NR < '"${3:-6}"' }'
}
# Each step's computation and waits are parts of the step, and the optimizer took time.
adds_up() {
	grep '"type":"step"' "$1" | awk '
		function field(name) { return match($0, "\"" name "\":[-0-9.e+]*") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : -1 }
		{ n++
		  if (field("forward_s") + field("backward_s") + field("optimiser_s") + field("comm_s") > field("step_s") * 1.001) bad = 1
		  if (!(field("optimiser_s") > 0)) bad = 1 }
		END { exit bad || !n }'
}
# states CHECKPOINT: as one file, whatever number of ranks wrote it: master, m, v in F32
states() {
	set -- "$1" "$1"/optimizer*.bin
	[ -e "$2" ] || echo "no states in $1" # so that two checkpoints without states differ
	for part in 0 1 2; do
		stat -c '%s %n' "$1"/optimizer*.bin | while read -r size file; do dd if="$file" bs=$((size / 3)) skip=$part count=1 status=none; done
	done
}
result() { [ -d "$1/model" ] && echo "$1/model/model.safetensors" || echo "$1/adapter/adapter_model.safetensors"; }

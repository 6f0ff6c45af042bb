#!/bin/bash
# Kills training runs at random moments, again and again, and resumes each until it ends. Every run must end as a run that
# nobody killed: the same adapter, bit for bit. A kill takes the supervisor or its worker, by SIGKILL.
# usage: train_kills.sh ASSAY ROOT [KILLS [SEED]]
set -u
assay=$(realpath "$1") root=$(realpath "$2") kills=${3:-1000} RANDOM=${4:-4711}
. "$root/tests/end2end/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES=
expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
for i in $(seq 24); do
	echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
cat > run.yaml << 'CONFIG'
model: {name_or_path: model, chat_template: qwen2.5}
lora: {r: 4, alpha: 8, dropout: 0.1}
data: {train: rows.jsonl, max_seq_length: 160}
training: {device: cpu, per_device_train_batch_size: 1, learning_rate: 1e-2, max_steps: 60, save_steps: 3, save_total_limit: 2}
CONFIG
since=$(date +%s%N)
ok "a run that nobody kills ends well" expect 0 train run.yaml --out whole --no-telemetry
whole_ms=$((($(date +%s%N) - since) / 1000000))

# attempt WORDS..: runs assay, and kills it after a random time of up to the whole run's. 0: it ended by itself; 1: it was killed.
attempt() {
	setsid "$assay" train "$@" --no-telemetry --no-cache > out 2> err &
	pid=$! after=$((RANDOM % whole_ms + 20))
	sleep "$((after / 1000)).$(printf '%03d' $((after % 1000)))"
	victim=$pid
	[ $((RANDOM % 2)) = 0 ] || victim=$(ps -o pid=,args= --ppid "$pid" | awk '/__trainer/ { print $1; exit }')
	if [ -n "$victim" ] && kill -KILL "$victim"; then struck=$((struck + 1)); fi 2> /dev/null
	wait "$pid" 2> /dev/null
}
struck=0 ended=0 other=0 stuck=0
while [ "$struck" -lt "$kills" ]; do
	rm -rf run
	attempt run.yaml --out run
	tries=0
	until [ "$(cat run/latest 2> /dev/null)" = checkpoint-60 ] && [ -s run/adapter/adapter_model.safetensors ]; do
		tries=$((tries + 1))
		[ "$tries" -le 100 ] || { stuck=$((stuck + 1)); break; }
		# A run that was killed before its first checkpoint has nothing to resume: it begins anew.
		if [ -s run/latest ]; then attempt --resume run; else rm -rf run && attempt run.yaml --out run; fi
	done
	# The last kill may have hit a run that was complete but for its report: resuming it must still end well.
	timeout 60 "$assay" train --resume run --no-telemetry --no-cache > out 2> err
	code=$?
	ended=$((ended + 1))
	cmp -s run/adapter/adapter_model.safetensors whole/adapter/adapter_model.safetensors && [ "$code" = 0 ] || {
		other=$((other + 1))
		echo "# run $ended: adapter differs, exit $code: $(tail -n 2 err | tr '\n' '|')"
	}
done
echo "# $struck kills over $ended runs"
ok "each of $ended runs could be resumed to its end" [ "$stuck" = 0 ]
ok "and gave the adapter of the run that nobody killed" [ "$other" = 0 ]
finish

#!/bin/bash
# Two CPU ranks, of which one's main thread shares its CPU with another program. If a rank is late because it waited for a CPU, the finding is about
# the CPUs of its node, and the rank is no straggler. On a busy machine the other rank may be as late, and then nothing is found; or later, and then
# the finding names it.
# usage: train_busy.sh ASSAY MODULE FAKE
. "$(dirname "$0")/training.sh"
mapfile -t cpus < <(taskset -pc $$ 2> /dev/null | sed 's/.*: //' | tr ',' '\n' | awk -F - '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }')
[ ${#cpus[@]} -ge 2 ] || lacks "two CPUs or taskset (package util-linux)"
[ -r /proc/thread-self/schedstat ] || lacks "a kernel that counts the time in which a thread waits for a CPU"
limit=60 # seconds
rows 24 1
cat > busy.yaml << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
lora: {r: 4, alpha: 8}
data: {train: rows.jsonl, max_seq_length: 128}
training: {device: cpu, learning_rate: 1e-3, per_device_train_batch_size: 1, global_batch_size: 4, max_steps: 60, save_strategy: no, tune: false}
CONFIG
cat > rank << 'RANK'
#!/bin/sh
echo $$ > "pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
RANK
chmod +x rank
taskset -c "${cpus[1]}" timeout $((2 * limit)) sh -c 'while :; do :; done' &
other=$!
trap 'kill $other; rm -rf "$tmp"' EXIT
patience=$limit started 2 ./rank "$assay" train busy.yaml --silence 300s --no-telemetry --json --out run > out 2> err &
job=$!
until grep -q '"type":"step"' out || ! kill -0 $job 2> /dev/null; do sleep 0.1; done
for rank in 0 1; do # the main thread of each worker, not its other threads
	for worker in $(cat /proc/"$(cat pid.$rank)"/task/*/children 2> /dev/null); do taskset -pc "${cpus[rank]}" "$worker" > /dev/null 2>&1; done
done
wait $job
code=$? # 2: a finding
ok "ranks train on busy CPUs" eval '{ [ $code = 0 ] || [ $code = 2 ]; } && grep -q "\"type\":\"end\"" out'
# A rank that a busy machine slows down otherwise is a straggler: it came later than it waited for a CPU.
late() { # lines of findings: milliseconds behind the others, and of waiting for a CPU
	sed -nE 's/.* ([0-9.]+) ms after the median.* no free CPU [0-9]+ % \(([0-9.]+) ms of waiting for a CPU.*/\1 \2/p'
}
grep '"finding":"straggler".*cause is: slower computation' out > stragglers
late < stragglers > times
ok "who waited for a CPU is no straggler" eval '[ "$(wc -l < times)" = "$(wc -l < stragglers)" ] && awk "\$1 < \$2 { exit 1 }" times'
if grep '"finding":"no_free_cpu"' out > words; then
	echo "# $(grep -o 'no free CPU [^;]*' words)"
	ok "the CPUs of its node are the cause" grep -q 'the node of rank [01] has too few free CPUs: .*no free CPU [0-9]* % (' words
	ok ".. with the setting to change" grep -q '"knob":"[^"]*stop other programs' words
else
	echo "# no rank was late in $(grep -c '"type":"step"' out) steps"
fi
finish

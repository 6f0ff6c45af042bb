#!/bin/bash
# A late rank of training on two GPUs that are not there: the fake driver has the host's clock and lets rank 1's GPU take longer. The fake NVML has the
# cause: a lower clock, a power limit, or fewer PCIe lanes. usage: train_late_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
. "$here/train_ranks.sh"
# rows of equal length, so that the ranks get equal ones
for i in $(seq 8); do echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask '"$i"'"}]}'; done > rows.jsonl
config late.yaml "graphs: false" "per_device_train_batch_size: 1" "save_strategy: no"
sed -i 's/max_steps: 4/max_steps: 19/; /eval_steps/d; s/global_batch_size: 4/global_batch_size: 2/; s/, eval: held.jsonl//' late.yaml
# late NAME VARIABLES: a run whose rank 1 has a slower GPU and these variables of NVML
late() {
	own=([0]="FAKE_CUDA=devices=4,pace=3 FAKE_NVML_VALUE=clock_sm=1980" [1]="FAKE_CUDA=devices=4,pace=40 $2")
	ranked 2 late.yaml --out "$1"
	own=()
	codes '0 0' && grep 'straggler' err.0 > words
}
named() { # CAUSE EVIDENCE
	says "straggler: the others wait for rank 1 in .* The likeliest cause is: $1\. Candidates: .*$2" words && says "rank 1, by $1: .*$2" "$3/journal.jsonl"
}
ok "a rank whose GPU has a lower clock is late" late clock FAKE_NVML_VALUE=clock_sm=198
ok ".. by its clock" named clock 'clock [1-9][0-9]* % (198 MHz, others 1980)' clock
ok ".. for which the others wait, as each step's line says" says 'ranks: compute [1-9][0-9]* communication [0-9]* waiting [1-9][0-9]* (for rank 1) rows [0-9]* save [0-9]* host [0-9]* %' err.0
late_steps() { # DIR: steps whose fields name the rank, with a share of waiting that adds up to 1 with the others
	grep '"late_rank"' "$1/journal.jsonl" | grep '"signals"' | awk '
		function behind_bracket(s) { sub(/.*\[/, "", s); return s + 0 }
		function field(name) { return match($0, "\"" name "\":{[^}]*\"v\":\\[[-0-9.e+]*") ? behind_bracket(substr($0, RSTART, RLENGTH)) : -1 }
		{ n++
		  sum = field("mean_compute_share") + field("exposed_share") + field("waiting_share") + field("mean_rows_share") + field("mean_save_share") + field("mean_host_share")
		  if (field("late_rank") != 1 || !(field("waiting_share") > 0.05) || sum < 0.999 || sum > 1.001) bad = 1 }
		END { exit bad || !n }'
}
ok ".. and its fields" late_steps clock
ok "a rank whose GPU is throttled is late" late throttle FAKE_NVML_VALUE=clock_sm=198\ FAKE_NVML_RATE=violation_power=8e8
ok ".. by that" named throttle 'throttle [1-9][0-9]* % ([78][0-9] % of the time, others 0 %)' throttle
ok "a rank whose GPU has four PCIe lanes is late" late link FAKE_NVML_VALUE=clock_sm=1980,pcie_width=4
ok ".. by its link" named link 'link [1-9][0-9]* % (PCIe generation x lanes 20, others 80)' link
finish

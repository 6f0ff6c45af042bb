#!/bin/sh
# The real binary trains on a GPU that is not there: the fake driver, whose kernels are their references, cuBLASLt, cuDNN and
# NVML. Losses beside the CPU's, what is planned, a run that is killed and goes on, and what is not there.
# usage: train_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
if ! says '^train_rows ' "$root/src/kernel/list" || ! "$assay" list kernels | grep -q train_rows; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi
for i in $(seq 24); do
	echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
head -n 3 rows.jsonl > held.jsonl
# config NAME DEVICE LINES..: lines are added to its training
config() {
	name=$1 device=$2
	shift 2
	cat > "$name" << CONFIG
model: {name_or_path: model, chat_template: chatml}
lora: {r: 4, alpha: 8}
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: ${length:-48}}
training:
  learning_rate: 1e-2
  max_steps: 4
  device: $device
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
losses() { sed -n 's/.*"type":"step".*"loss":\([0-9.]*\).*/\1/p' "$1"; }

config cpu.yaml cpu
config gpu.yaml gpu "step_parts: true"
config auto.yaml auto
ok "the CPU trains" expect 0 train cpu.yaml --out cpu --json
losses out > cpu.losses
ok "the GPU trains" expect 0 train gpu.yaml --out gpu --json
losses out > gpu.losses
cp out gpu.json
ok "all steps are told" [ "$(wc -l < gpu.losses)" = 4 ]
ok "its losses are the CPU's" sh -c 'paste cpu.losses gpu.losses | awk "{ d = \$1 - \$2; if (d < 0) d = -d; if (d > 0.005 * \$1) exit 1 }"'
ok "the parts of a step are told" says '"attention_part_s":' gpu.json
ok "and their FLOP, of those that have some" eval 'says "\"attention_part_flop\":[1-9]" gpu.json && says "\"elements_part_bytes\":[1-9]" gpu.json && ! grep -q "optimiser_part_flop\|attention_part_bytes" gpu.json'
# FLOP of the parts over what the model asks for, of each step: attention's backward pass makes P again, a tenth here.
made() { tr ',' '\n' < "$1" | sed 's/[{}"]//g' | awk -F: '/^step_s:/ { s = $2 } /^flop_rate:/ { rate = $2 } /_part_flop:/ { sum += $2 } /^loss:/ && sum { print sum / (rate * s); sum = 0 }'; }
config several.yaml gpu "step_parts: true" "gradient_accumulation_steps: 3"
ok "several micro-batches a step" expect 0 train several.yaml --out several --json
made out > several.made
made gpu.json > gpu.made
ok "each step counts the same bytes copied, the first as well" [ "$(sed -n 's/.*"copies_part_bytes":\([0-9]*\).*/\1/p' gpu.json | awk '{ m = !m || $1 < m ? $1 : m; M = $1 > M ? $1 : M; n++ } END { print (n == 4 && m > 0.9 * M) }')" = 1 ]
ok "have the FLOP that the model asks for, and what is made again" awk '!($1 > 1 && $1 < 1.2) { bad = 1 } END { exit bad || NR != 8 }' gpu.made several.made
sed -n '/^### Parts of a step/,/^### Steps/p' gpu/REPORT.md | tr -d '\\' > parts
ok "the report has each of them" [ "$(grep -cE '^\| (products|thin_products|attention|attention_backward|elements|loss|optimiser|copies|host|step) ' parts)" = 10 ]
ok "and they add up to the step" awk -F'|' '/ ms /{ split($3, ms, " "); if ($2 ~ /^ step $/) step = ms[1]; else { sum += ms[1]; n++ } } END { d = sum - step; exit !(n == 9 && step > 0 && d * d < 0.01) }' parts
ok "what is not at the rate of products is told, part by part" eval 'grep -q "^  - thin.*_products ×.* ms at .* TFLOPS" gpu/REPORT.md && grep -q "^  - host ×" gpu/REPORT.md && grep -q "^  - unexplained ×" gpu/REPORT.md'
ok "on a CPU phases are, and nothing is to be set" eval 'grep -q "^| forward | .* ms | " cpu/REPORT.md && grep -q "timed only on a GPU" cpu/REPORT.md && ! grep -q "step.*_parts" cpu/REPORT.md'
ok "what its process held on the host is told" says '"host_bytes":[1-9]' gpu.json
ok "who attends is told" says '"type":"ready".*"attention":"cuDNN [0-9.]* for rows of one length, else own"' gpu.json
ok "an adapter is there" [ -s gpu/adapter/adapter_model.safetensors ]
ok "auto takes the GPU" expect 0 train auto.yaml --plan
ok "and its memory is planned" says '^  libraries .*GPU memory of the context' out
ok "nobody else is on it, and nobody is named" [ -z "$(grep 'share a GPU' err)" ]
sed 's/"compute_processes": \[0, \[\]\]/"compute_processes": [0, [{"pid": 1, "memory": 1073741824}]]/' "$FAKE_NVML_FILE" > shared.json
FAKE_NVML_FILE=$PWD/shared.json "$assay" train auto.yaml --plan > out 2> err
ok "another process on it is named, and what came of that" eval 'says "warning: 0000:.*: 1 other process uses it: runs that share a GPU" err && says "^  libraries .*GPU memory of the context" out'
ok "without one auto takes the CPU" env LD_LIBRARY_PATH= "$assay" train auto.yaml --plan
env LD_LIBRARY_PATH= "$assay" train auto.yaml --plan > out
ok "and its memory is the machine's" says '^  program ' out
env LD_LIBRARY_PATH= "$assay" train gpu.yaml --plan > out 2> err
ok "a GPU that is asked for and not there is an error" [ $? = 2 ]
ok "which says so" says 'this machine has no usable GPU' err

# A base model in 4 bits: quantized on the device, dequantized one layer ahead.
four() { sed -i 's/chat_template: chatml/&, load_in_4bit: true/' "$@"; }
config cpu4.yaml cpu
config gpu4.yaml gpu
config single4.yaml gpu "precision: fp32"
four cpu4.yaml gpu4.yaml single4.yaml
ok "a CPU trains with weights in 4 bits" expect 0 train cpu4.yaml --out cpu4 --json
losses out > cpu4.losses
ok "a GPU too" expect 0 train gpu4.yaml --out gpu4 --json
losses out > gpu4.losses
ok "its losses are the CPU's" sh -c 'paste cpu4.losses gpu4.losses | awk "{ d = \$1 - \$2; if (d < 0) d = -d; if (d > 0.005 * \$1) exit 1 }"'
ok "which are not those of all bits" eval '! cmp -s cpu4.losses cpu.losses'
proof() { PROOF_STEPS=4 "$root/tools/four-bit-proof" "$assay" four tiny > proof.out 2>&1 || { cat proof.out > err; false; }; }
ok "to the last digit those of the same numbers in BF16" proof
ok "its plan has two slots" expect 0 train gpu4.yaml --plan
ok "by their name" says '^  slots ' out
ok "float32 with weights in 4 bits is refused" expect 2 train single4.yaml --out single4
ok "by name" says 'load_in_4bit needs precision: bf16 or fp8 on a GPU' err

# What the driver's counters say of the card stands beside each step, and over the steps beside the results. Steps last as long on each machine (pace).
sed 's/"5": 0/"5": 62/' "$FAKE_NVML_FILE" > busy.json
config watched.yaml gpu "max_steps: 24"
sed -i '/max_steps: 4$/d' watched.yaml
FAKE_CUDA=pace=2 FAKE_NVML_FILE=$PWD/busy.json "$assay" train watched.yaml --out watched > watched.out 2> watched.err
ok "a step's line has tensor activity, watts and clock" says '^assay: step 24/24 .* MFU .* | forward .* | tensor 62 % [0-9]* W [0-9]* MHz | ' watched.err
ok "the journal has them beside the step" says '"source":"train".*"tensor_active_share":.*"v":\[0.62\]' watched/journal.jsonl
ok "and beside the results" eval '[ "$(value watched 0 tensor_active_share)" = 0.62 ] && [ -n "$(value watched 0 power_integral_w)" ]'
ok "without parts it says what to set" grep -q 'training: step.*_parts: true times each' watched/REPORT.md
ok "the report tells them" says '^tensor_active_share  *62.0 %' watched.out
FAKE_NVML_FILE=$PWD/busy.json "$assay" train watched.yaml --out blind --no-telemetry --json > blind.json 2> err
ok "without telemetry nothing is said of it" eval 'says "\"type\":\"step\",\"step\":24" blind.json && ! grep -q tensor_active_share blind.json'

# A run that is killed behind its first checkpoint goes on to the same bits.
config whole.yaml gpu "save_steps: 2" "deterministic: true" "gradient_accumulation_steps: 3"
ok "a run with checkpoints" expect 0 train whole.yaml --out whole
"$assay" train whole.yaml --out cut --json > cut.json 2> err &
pid=$!
for _ in $(seq 600); do
	grep -qs '"type":"saved","step":2' cut.json && break
	sleep 0.1
done
kill -KILL "$pid"
wait "$pid" 2> /dev/null
for _ in $(seq 100); do # its worker dies with it
	pgrep -P "$pid" > /dev/null 2>&1 || break
	sleep 0.1
done
ok "one that was killed goes on" expect 0 train --resume cut
ok "to the same adapter, bit for bit" cmp whole/adapter/adapter_model.safetensors cut/adapter/adapter_model.safetensors
ok "and the same moments" cmp whole/checkpoint-4/optimizer.bin cut/checkpoint-4/optimizer.bin

# The same in full with small optimizer states. No checkpoint of other states is gone on from.
for states in "adamw_8bit split" "adamw_bnb_8bit none" "adamw_bf16 fp32"; do
	config states.yaml gpu "save_steps: 2" "deterministic: true" "full_finetuning: true" "optim: ${states% *}" "master_weights: ${states#* }"
	sed -i '/^lora:/d' states.yaml
	rm -rf states states_cut cut.json # the next run has the same name, and its words are waited for
	ok "a run with $states" expect 0 train states.yaml --out states
	"$assay" train states.yaml --out states_cut --json > cut.json 2> err &
	pid=$!
	for _ in $(seq 600); do
		grep -qs '"type":"saved","step":2' cut.json && break
		sleep 0.1
	done
	kill -KILL "$pid"
	wait "$pid" 2> /dev/null
	for _ in $(seq 100); do
		pgrep -P "$pid" > /dev/null 2>&1 || break
		sleep 0.1
	done
	ok "one that was killed goes on" expect 0 train --resume states_cut
	ok "to the same states, bit for bit" cmp states/checkpoint-4/optimizer.bin states_cut/checkpoint-4/optimizer.bin
	ok "and the same model" cmp states/model/model.safetensors states_cut/model/model.safetensors
	ok "which generates" expect 0 generate states/model town --device cpu --tokens 2 --raw
done
ok "the plan names the states" eval 'expect 0 train states.yaml --plan && says "^  optimizer " out'

# What crosses on streams of its own is waited for: late, it changes no bit, of what is trained nor of checkpoints.
ok "a driver whose other streams are late" env FAKE_CUDA=late=1 "$assay" train whole.yaml --out late
ok "trains the same adapter" cmp whole/adapter/adapter_model.safetensors late/adapter/adapter_model.safetensors
ok "and saves the same on the way" cmp whole/checkpoint-2/optimizer.bin late/checkpoint-2/optimizer.bin
ok "which is another than the last" eval '! cmp -s late/checkpoint-2/optimizer.bin late/checkpoint-4/optimizer.bin'
FAKE_CUDA=cuMemcpyDtoHAsync_v2=2@4 "$assay" train whole.yaml --out untaken > out 2> err
ok "numbers that cannot be fetched end it" [ $? = 2 ]
FAKE_CUDA=cuStreamBeginCapture_v2=900 "$assay" train whole.yaml --out direct > out 2> err
ok "a driver that captures nothing trains the same adapter" cmp whole/adapter/adapter_model.safetensors direct/adapter/adapter_model.safetensors
ok "and why its kernels are launched one by one is said once" [ "$(grep -c 'no CUDA graph could be made, .*cuStreamBeginCapture' err)" = 1 ]

# The card that is planned for is the one that works: of four the first answers nothing, the second is taken.
cards() { FAKE_NVML_FILE=$root/tests/fake/h100x4.json FAKE_CUDA=devices=4 "$@"; }
config card.yaml auto "save_steps: 2" "save_total_limit: 0" "recompute: auto"
cards env FAKE_NVML_LOST=0 "$assay" train card.yaml --out card --json > out 2> err
ok "the first usable card trains" [ $? = 0 ]
ok "it is opened" says '"type":"ready".*"device":"NVIDIA H100[^"]*8E:00.0)"' out
ok "it is in the journal" says '"device":"NVIDIA H100[^"]*8E:00.0)"' card/journal.jsonl
"$assay" report card > report
ok "in the report" says '^device .*NVIDIA H100.*8E:00.0) ' report
ok "and in the checkpoint" says '"device": "NVIDIA H100[^"]*8E:00.0)"' card/checkpoint-2/trainer_state.json
ok "what recompute: auto stood for is kept" says '  recompute: none' card/config.yaml
cards env CUDA_VISIBLE_DEVICES=3 "$assay" train card.yaml --out third --json > out 2> err
ok "one that is granted alone is taken" says '"device":"NVIDIA H100[^"]*90:00.0)"' out

# A run that goes on takes what it chose, on another card of the same kind too; what does not run there is chosen anew.
cut() { # RUN: it was cut behind step 2
	sed -i '/"type":"end"/d; /"type":"close"/d' "$1/journal.jsonl"
	rm -rf "$1/checkpoint-4" "$1/adapter"
}
cut card
cp -r card full
FAKE_CUDA=memory=100 FAKE_NVML_FILE=$root/tests/fake/h100x4.json "$assay" train --resume full > out 2> err
ok "a card that others filled since ends it" [ $? = 2 ]
ok "in words, and is told" says 'error: cannot allocate [0-9]* bytes on NVIDIA H100 .*: 104857600 are free' err
ok "and the steps before stand in its results" [ "$(value full 0 steps)" = 2.0 ]
cp -r card card2
ok "it goes on on another card" cards "$assay" train --resume card --json
cards "$assay" train --resume card2 --json > out 2> err
ok "with a warning" says 'the run was started on NVIDIA H100[^:]*:8E:00.0) and continues on NVIDIA H100[^:]*:8D:00.0)$' err
ok "by what it chose" says '"type":"products".*"recalled":true' out
ok "none of which is timed again" eval '! says "\"seconds\":[0-9.e-]*[1-9][0-9.e-]*,\"first_seconds\":[0-9.e-]*,\"recalled\":false" out'
cut card2
cards env FAKE_CUBLASLT=second=15 "$assay" train --resume card2 --json > out 2> err
ok "what does not run any more is no error" [ $? = 0 ]
ok "and is chosen anew" says '"type":"products".*"recalled":false' out
cut card2
FAKE_CUBLASLT=version=120901 cards "$assay" train --resume card2 --json > out 2> err
ok "another library is told" says 'the run was started with cuBLASLt 13.1.1 and continues with cuBLASLt 12.9.1: kernel candidates are timed again' err
ok "and takes nothing of it" eval '! says "\"recalled\":true" out'

# Products that later steps meet are told behind those: rows of other lengths, one a pack.
for i in 4 5 80 90; do
	echo '{"messages":[{"role":"user","content":"'"$(printf "%0${i}d" 0)"'"},{"role":"assistant","content":"ask"}]}'
done > longer.jsonl
length=256 config longer.yaml gpu
sed -i 's/train: rows.jsonl/train: longer.jsonl, packing: false, shuffle: false, long_rows: truncate/' longer.yaml
ok "rows of several lengths train" expect 0 train longer.yaml --out longer --json
ok "and what they chose is told when they come" [ "$(grep -c '"type":"products"' out)" -gt 1 ]

# Numbers of no file: the same on both.
expect 0 make-model --shape tiny --holes --out hollow
for device in cpu gpu; do
	config random.yaml $device
	sed 's/name_or_path: model/name_or_path: hollow, random_weights: true/' random.yaml > random-$device.yaml
	expect 0 train random-$device.yaml --out random-$device --json || cat err
	losses out > random-$device.losses
done
ok "random weights need no numbers in files" [ "$(wc -l < random-gpu.losses)" = 4 ]
ok "and are the CPU's" sh -c 'paste random-cpu.losses random-gpu.losses | awk "{ d = \$1 - \$2; if (d < 0) d = -d; if (d > 0.005 * \$1) exit 1 }"'

# What goes wrong.
mkdir fewer
for lib in libcuda.so.1 libnvidia-ml.so.1 libcudnn.so.9; do ln -s "$fakes/$lib" fewer/; done
LD_LIBRARY_PATH=$PWD/fewer ASSAY_LIB_CUBLASLT=/nowhere "$assay" train gpu.yaml --out nolib > out 2> err
ok "without cuBLASLt it ends" [ $? = 2 ]
ok "and names it" says 'device: gpu: this machine has no usable GPU: cuBLASLt, .* is not usable: .*/nowhere' err
ok "before a folder is made" [ ! -e nolib ]
LD_LIBRARY_PATH=$PWD/fewer ASSAY_LIB_CUBLASLT=/nowhere "$assay" train auto.yaml --out onhost > out 2> err
ok "auto takes the CPU then" [ $? = 0 ]
ok "with a warning that names what lacks" says 'training on the CPU, because the GPU is not usable: cuBLASLt, .* is not usable' err
ok "and keeps that" says '  device: cpu' onhost/config.yaml
FAKE_CUBLASLT=version=110903 "$assay" train gpu.yaml --out oldlib > out 2> err
ok "an old cuBLASLt is none" [ $? = 2 ]
ok "and is told with its place" says 'this machine has no usable GPU: cuBLASLt 11[.0-9]* is older than the required version 12: .*libcublasLt' err
mkdir nvml
for lib in libnvidia-ml.so.1 libcudnn.so.9 libcublasLt.so.13; do ln -s "$fakes/$lib" nvml/; done
LD_LIBRARY_PATH=$PWD/nvml "$assay" train auto.yaml --out watching > out 2> err
ok "with NVML alone, as in some containers, auto takes the CPU" [ $? = 0 ]
ok "with a warning that names the driver's library" says "training on the CPU, because the GPU is not usable: the CUDA driver library, .* is not usable: libcuda" err
for refusal in 100 803 999; do
	FAKE_CUDA=cuInit=$refusal "$assay" train auto.yaml --out "begun$refusal" > out 2> err
	ok "a CUDA that refuses to begin ($refusal): auto takes the CPU" [ $? = 0 ]
	ok "and says so" says "training on the CPU, because the GPU is not usable: CUDA does not list 0000:8d:00.0: cuInit answered $refusal" err
	FAKE_CUDA=cuInit=$refusal "$assay" train gpu.yaml --out "refused$refusal" > out 2> err
	ok "a GPU that is asked for ends it" [ $? = 2 ]
	ok "with the driver's answer" says "error: cuInit: .*$refusal" err
	FAKE_CUDA=cuInit=$refusal "$assay" probe gemm m=256 n=256 k=256 --target gpu --out "probed$refusal" > out 2> err
	ok "a probe of it is unknown" [ $? = 2 ]
	ok "with the driver's answer too" says "cuInit: .*$refusal" probed$refusal/journal.jsonl
done
cp -r model heads4
sed -i 's/"num_attention_heads": 6/"num_attention_heads": 48/; s/"num_key_value_heads": 2/"num_key_value_heads": 16/; s/"head_dim": 32/"head_dim": 4/' heads4/config.json
sed 's/name_or_path: model/name_or_path: heads4/' gpu.yaml > heads-gpu.yaml
sed 's/name_or_path: model/name_or_path: heads4/' auto.yaml > heads-auto.yaml
ok "heads that our kernels do not take are refused" expect 2 train heads-gpu.yaml --out heads
ok "before a folder is made" eval 'says "this machine has no usable GPU: a head size of 4; the kernels support multiples of 8" err && [ ! -e heads ]'
"$assay" train heads-auto.yaml --out heads > out 2> err
ok "auto trains them on the CPU" [ $? = 0 ]
ok "and says why" says 'training on the CPU, because the GPU is not usable: a head size of 4' err
# float32 and TF32 on the GPU: the loss of each step is that of the CPU
loss_of() { sed -n 's/.*"type":"step".*"loss":\([0-9.e-]*\).*/\1/p' "$1"; } # FILE of --json lines
near() { # A B TOLERANCE: the losses of two runs, step by step
	[ "$(loss_of "$1" | wc -l)" -gt 1 ] && paste "$(loss_of "$1" > "$1.loss"; echo "$1.loss")" "$(loss_of "$2" > "$2.loss"; echo "$2.loss")" |
		awk -v most="$3" 'NF != 2 || ($1 - $2)^2 > (most * $1)^2 { bad = 1 } END { exit bad }'
}
sed 's/^training:/training:\n  bf16: false/' gpu.yaml > float-gpu.yaml
sed 's/^training:/training:\n  precision: tf32/' gpu.yaml > tf32-gpu.yaml
sed 's/^training:/training:\n  precision: fp32/; s/device: gpu/device: cpu/' gpu.yaml > float-cpu.yaml
"$assay" train float-gpu.yaml --json --out float > float.out 2> err
ok "a GPU trains in float32" [ $? = 0 ]
ok "with plain attention" says '"attention": *"plain"' float/results.json
ok "what was computed is kept" eval 'says "precision: fp32" float/config.yaml && says "bf16: false" float/config.yaml'
"$assay" train float-cpu.yaml --json --out float-cpu > float-cpu.out 2> err
ok "the CPU trains the same" [ $? = 0 ]
ok "and the losses agree as float32 does" near float.out float-cpu.out 2e-6
"$assay" train tf32-gpu.yaml --json --out tf32 > tf32.out 2> err
ok "a GPU trains with TF32" eval '[ $? = 0 ] && near tf32.out float-cpu.out 1e-3'
"$assay" train gpu.yaml --json --out brief > brief.out 2> err
ok "BF16 is further off" eval '! near brief.out float-cpu.out 2e-6'
sed 's/^training:/training:\n  precision: tf32/; s/device: gpu/device: cpu/' gpu.yaml > tf32-cpu.yaml
ok "a CPU has no TF32" expect 2 train tf32-cpu.yaml --out tf32-cpu
ok "and says what it has" eval 'says "precision: tf32 needs a GPU, and a CPU computes in float32" err && [ ! -e tf32-cpu ]'
FAKE_CUDA=memory=2081 "$assay" train gpu.yaml --out small > out 2> err
ok "too little memory ends it" [ $? = 2 ]
ok "with the plan and what to turn" says "the plan needs .*recompute: full" err
FAKE_CUDA=cuMemHostAlloc=2@7 "$assay" train gpu.yaml --out unpinned > out 2> err
ok "memory of the host that cannot be pinned ends it" [ $? = 2 ]
ok "and is not taken for the GPU's" says "error: cannot allocate [0-9]* bytes of pinned host memory: cuMemHostAlloc" err
FAKE_CUDA=cuLaunchKernel=719@60 "$assay" train gpu.yaml --out lost > out 2> err
ok "a kernel that fails ends it" [ $? = 2 ]
ok "in the driver's words, of the step and the card" says 'error: step 1 of 4 on NVIDIA H100 .*(0000:8D:00.0): cuLaunchKernel\(Ex\)\{0,1\}: .*719' err
ok "with nothing saved there is nothing to go on from" eval '! says "resumes from" err'
FAKE_CUDA=cuLaunchKernel=719 "$assay" train gpu.yaml --out unloaded > out 2> err
ok "one that fails before is placed too" says 'error: weights on NVIDIA H100 .*(0000:8D:00.0): cu[A-Z][A-Za-z_0-9]*: .*719' err # the first call of any thread that meets it
FAKE_CUDA=cuStreamCreate=2@3 "$assay" train whole.yaml --out unsaved > out 2> err
ok "and one of a checkpoint" says 'error: checkpoint after step 2 of 4 on NVIDIA H100 .*(0000:8D:00.0): cuStreamCreate' err
FAKE_CUDA=cuMemcpyDtoHAsync_v2=719@7 "$assay" train whole.yaml --out fell > out 2> err
ok "one that fails behind a checkpoint" [ $? = 2 ]
ok "is told what it goes on from" says 'assay train --resume fell continues from the newest checkpoint' err
ok "and does, to the same bits" eval 'expect 0 train --resume fell && cmp whole/adapter/adapter_model.safetensors fell/adapter/adapter_model.safetensors'
FAKE_CUDA=nan=train_adamw@1 "$assay" train gpu.yaml --out nan > out 2> err
ok "a NaN is found" [ $? = 1 ]
config fp8.yaml gpu "precision: fp8"
ok "FP8 trains" expect 0 train fp8.yaml --out fp8 --json
losses out > fp8.losses
ok "its losses are within 1 % of the CPU's" sh -c 'paste cpu.losses fp8.losses | awk "{ d = \$1 - \$2; if (d < 0) d = -d; if (d > 0.01 * \$1) exit 1 } END { exit NR != 4 }"'
ok "no scale overflowed, which is told" eval 'says "\"fp8_overflows\":0" out && ! says "\"fp8_overflows\":[1-9]" out'
config fp8s.yaml gpu "precision: fp8" "deterministic: true"
ok "deterministic FP8" eval 'expect 0 train fp8s.yaml --out fp8s && expect 0 train fp8s.yaml --out fp8s-again'
ok "has the same bits each time" cmp fp8s/adapter/adapter_model.safetensors fp8s-again/adapter/adapter_model.safetensors
sed 's/"compute_capability": \[0, \[9, 0\]\]/"compute_capability": [0, [8, 0]]/' "$FAKE_NVML_FILE" > a100.json
FAKE_NVML_FILE=$PWD/a100.json "$assay" train fp8.yaml --out old > out 2> err
ok "a GPU without FP8 in blocks is refused" [ $? = 2 ]
ok "by name, with the reason" says 'precision: fp8 needs a GPU of sm_90 (Hopper), because .*; NVIDIA H100 .* is sm_80: use precision: bf16' err
sed 's/"compute_capability": \[0, \[9, 0\]\]/"compute_capability": [0, [7, 5]]/' "$FAKE_NVML_FILE" > t4.json
FAKE_NVML_FILE=$PWD/t4.json "$assay" train gpu4.yaml --out old4 > out 2> err
ok "4 bits on a GPU before sm_80 are refused" [ $? = 2 ]
ok "with the reason" says 'device: gpu: this machine has no usable GPU: its compute capability is below 8.0' err
ok "and nothing is written" [ ! -e old4 ]
length=100 config odd.yaml gpu "precision: fp8" "per_device_train_batch_size: 3"
ok "tokens of no multiple of 16 are refused" expect 64 train odd.yaml --out odd
ok "with the settings" says 'per_device_train_batch_size x data: max_seq_length is 300' err
length=4096 config none.yaml gpu "per_device_train_batch_size: 4096" "recompute: none"
ok "a plan that does not fit" expect 0 train none.yaml --plan
ok "says what recomputation would take, and whether that is enough" eval 'says "^ .* training: recompute: cheap (not enough)$" out && says "^ .* training: recompute: full" out'
ok "in words that the configuration takes" eval 'sed "s/recompute: none/recompute: full/" none.yaml > full.yaml && expect 0 train full.yaml --plan'
length=4096 config large.yaml gpu "per_device_train_batch_size: 4096"
ok "what does not fit is refused with what to turn" expect 2 train large.yaml --out large
ok "with the setting" says 'per_device_train_batch_size' err
finish

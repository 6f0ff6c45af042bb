#!/bin/sh
# Fine-tuning of a small model of random weights, from its configuration to its adapter: a job with a worker of its own that
# is stopped, killed, resumed and refused. usage: train.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too

# rows FILE FIRST LAST: short conversations; none is of another range
rows() {
	for i in $(seq "$2" "$3"); do
		echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
	done > "$1"
}
tools='"tools":[{"type":"function","function":{"name":"ask","parameters":{"type":"object","properties":{"station":{"type":"integer"}}}}}]'
# config NAME LINES..: a configuration; lines are added to its training
config() {
	name=$1
	shift
	cat > "$name" << CONFIG
model: {name_or_path: ${model:-model}, chat_template: ${template:-qwen2.5}}
lora: ${lora:-"{r: 4, alpha: 8, dropout: 0.1}"}
data: {train: ${data:-rows.jsonl}, eval: held.jsonl, max_seq_length: ${length:-160}}
training:
  device: cpu
  per_device_train_batch_size: 1
  learning_rate: 1e-2
  save_total_limit: 2
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
figure() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "${2:-out}" | head -n 1; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 < b + 0) }'; } # a figure that is not there is not less

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
rows rows.jsonl 1 24
rows held.jsonl 101 106

config whole.yaml "max_steps: 60" "eval_steps: 30" "eval_on_start: true" "save_steps: 20" "warmup_steps: 2" \
	"gradient_accumulation_steps: 2"
ok "a plan is made without reading the model" expect 0 train whole.yaml --plan
ok "it names memory and work" says '^  saved ' out
ok "and is JSON when asked" sh -c '"$1" train whole.yaml --plan --json | grep -q "\"memory_bytes\": [1-9]"' sh "$assay"

ok "it trains" expect 0 train whole.yaml --out whole
ok "each step is told" says 'step 60/60 loss' err
ok "the report has its figures" says '^loss_first ' out
ok "and its steps" says '^ *60 ' out
"$assay" report whole --format json > report.json
ok "products' share of the steps is told" awk -v share="$(figure gemm_share report.json)" 'BEGIN { exit !(share > 0 && share <= 1) }'
ok "the held-out loss went down" less "$(figure eval_loss report.json)" "$(figure eval_loss_first report.json)"
ok "the adapter is there in PEFT's files" [ -s whole/adapter/adapter_model.safetensors ]
ok "and says of what model" says '"peft_type": "LORA"' whole/adapter/adapter_config.json
ok "the newest checkpoint is named" says '^checkpoint-60$' whole/latest
ok "older ones are gone but two" [ "$(find whole -maxdepth 1 -name 'checkpoint-*' | wc -l)" = 2 ]
ok "a best checkpoint that was not written is not named" says '"best_model_checkpoint": null' whole/checkpoint-40/trainer_state.json
ok "the configuration is kept as understood" says 'gradient_accumulation_steps: 2' whole/config.yaml
mkdir own
cp whole.yaml own/config.yaml
ok "nor beside what somebody keeps" expect 64 train own/config.yaml --out own
ok "whose configuration stays" cmp whole.yaml own/config.yaml
mkdir theirs
{ echo "# my only one" && cat whole.yaml; } > theirs/config.yaml
cp theirs/config.yaml kept.yaml
ok "nor over another one that is alone there" expect 64 train whole.yaml --out theirs
ok "which stays as well" cmp kept.yaml theirs/config.yaml
claimed() { flock theirs "$assay" train whole.yaml --out theirs > out 2> err; [ $? = 2 ]; } # as one that begins there has it
ok "nor where another run is being begun" claimed
ok "which is said" says 'theirs: another run is starting there now' err
ok "a run is not begun over" expect 64 train whole.yaml --out whole
ok "and how to go on is said" says 'continue it with --resume whole' err

ok "steps are JSON Lines when asked" expect 0 train whole.yaml --out again --json
ok "each a whole object" sh -c 'grep -c "^{\"type\": *\"step\".*}$" out | grep -qx 60'
config unsaved.yaml "max_steps: 2" "save_strategy: no"
ok "a run for a measurement may save nothing" expect 0 train unsaved.yaml --out unsaved
ok "it has its figures" says '^loss_first ' out
ok "and neither checkpoint nor adapter" [ -z "$(find unsaved -name 'checkpoint-*' -o -name adapter -o -name latest)" ]
ok "two runs can be compared" expect 0 compare --all whole again
ok "by their rate" says '^train  *node  *[0-9]* token' out
figures() { # of all steps, whichever process made them
	"$assay" report "$1" --format json > figures.json
	for name in steps loss tokens_per_s step_s half_width_share gemm_share; do echo "$name $(figure $name figures.json)"; done
}
figures again > before
sed -i '/"type":"end"/d; /"type":"close"/d' again/journal.jsonl
ok "one that was cut before it had said that it ended" expect 0 train --resume again
ok "ends again" says 'saved: again/adapter' err
figures again > after
ok "with the figures of the steps it had made" sh -c 'grep -q "^loss [0-9]" after && grep -q "^tokens_per_s [0-9]" after && cmp before after'
ok "and its memory" less 0 "$(figure memory_bytes figures.json)"
ok "it can be compared" expect 0 compare --all whole again
ok "by its rate as well" says '^train  *node  *[0-9]* token' out
if "$assay" archive whole --out whole.tar.zst > out 2> err; then
	ok "an archive names what it leaves out, the adapter first" says '^not included: adapter/' out
else
	ok "an archive needs its module, which is told" says 'archive' err
fi
ok "the same seed gives the same adapter" cmp whole/adapter/adapter_model.safetensors again/adapter/adapter_model.safetensors

# Stopped in the middle, killed in the middle: the same as never stopped.
seen() { sed -n '/"diagnose"/,/"told"/p' "$1/checkpoint-60/trainer_state.json"; } # losses and norms that findings look at
same_as_whole() { # DIR
	[ "$(seen "$1")" = "$(seen whole)" ] && seen whole | grep -q '"steps": 60' &&
		cmp "$1/checkpoint-60/optimizer.bin" whole/checkpoint-60/optimizer.bin &&
		cmp "$1/adapter/adapter_model.safetensors" whole/adapter/adapter_model.safetensors
}
begin() { # DIR OPTIONS..: a run that has done $at steps. A pipe wakes this shell at once; looking into a file now and then, it came too late.
	rm -f said
	mkfifo said
	from="whole.yaml --out"
	[ -e "$1" ] && from=--resume
	# shellcheck disable=SC2086
	"$assay" train $from "$@" > out 2> said &
	pid=$!
	exec 3< said
	: > err
	while read -r line <&3; do
		printf '%s\n' "$line" >> err
		case $line in *step\ ${at:-2}/60*) break ;; esac
	done
	cat <&3 >> err &
	listener=$!
	exec 3<&-
}
ended() { # CODE; what it said last has been read then
	wait "$pid"
	code=$?
	wait "$listener"
	[ $code = "$1" ]
}
worker_of() { # PID: its child that trains
	read -r children < "/proc/$1/task/$1/children"
	for one in $children; do
		grep -qsz '^__trainer$' "/proc/$one/cmdline" && echo "$one"
	done
}
begin stopped
kill -INT "$pid"
ok "Ctrl-C ends it, inconclusive" ended 2
ok "and says how to go on" says 'assay train --resume stopped continues' err
ok "the journal has it" says '"ending":"cancelled","status":"cancelled"' stopped/journal.jsonl
ok "what was done is saved" sh -c '[ "$(sed s/checkpoint-// stopped/latest)" -ge 2 ]'
# changed FILE WORDS: the run does not go on with another FILE, and says so
changed() {
	expect 64 train --resume stopped && says "$1: the $2 changed after stopped was started" err
}
gone=$(sh -c 'echo $$').$(cut -c1-13 /proc/sys/kernel/random/boot_id)-$(readlink /proc/self/ns/pid | tr -dc 0-9)
mkdir stopped/checkpoint-1.new
touch "stopped/latest.$gone.new"
cp -r model first
cp rows.jsonl first.jsonl
sed -i '1s/town/city/' rows.jsonl
ok "other rows are not gone on with" changed rows.jsonl "training rows"
mv first.jsonl rows.jsonl
"$assay" make-model --shape tiny --seed 2 --out second > out
cp second/model.safetensors model
ok "nor another model" changed model model
cp first/model.safetensors model
echo >> model/tokenizer_config.json
ok "nor another tokenizer" changed model/tokenizer_config.json tokenizer
cp first/tokenizer_config.json model
ok "it goes on" expect 0 train --resume stopped
ok "and is the uninterrupted run, bit for bit" same_as_whole stopped
ok "nothing half written is left" sh -c '! ls -d stopped/*.new'
firsts() { "$assay" report "$1" --format json > again.json && echo "$(figure loss_first again.json) $(figure eval_loss_first again.json)"; }
ok "first losses are the whole run's" [ "$(firsts stopped)" = "$(firsts whole)" ]
# goes_on DIR: from its newest checkpoint, to its end. Step 25 is told after checkpoint-20 is on the disk, step 45 after checkpoint-40.
goes_on() {
	newest=$(cat "$1/latest")
	expect 0 train --resume "$1" && says "resumes from .*$1/$newest\$" err
}
at=25 begin killed
worker=$(worker_of "$pid")
ended_by_kill() { kill -KILL "$pid" && ! ended 0; }
ok "a run is killed" ended_by_kill 2> /dev/null
ok "after a kill the report shows what was written" expect 2 report killed
ok "its worker died with it" sh -c '[ -n "$1" ] && ! grep -qs "^State:[[:space:]]*[^Z[:space:]]" "/proc/$1/status"' sh "$worker"
there() { ls -d killed/checkpoint-*[0-9] killed/latest && cat killed/latest; }
before=$(there)
(ulimit -f 250; exec "$assay" train --resume killed --no-telemetry > out 2> err)
code=$?
ok "a full disk ends the run" [ "$code" = 2 ]
ok "and is named" says 'File too large\|No space' err
ok "the checkpoint before stays, and nothing half written has one's name" [ "$(there)" = "$before" ]
ok "a killed run goes on" goes_on killed
ok "and is the uninterrupted run, bit for bit" same_as_whole killed
at=45 begin fallen
kill -KILL "$(worker_of "$pid")"
ok "a worker that is killed ends the run" ended 2
phase=train
! says 'step 60/60' err || phase='\(train\|save\)' # killed late: it was through with its steps
ok "which says so" says "the training process ended in phase $phase: signal 9" err
ok "and goes on" goes_on fallen
ok "to the same end" same_as_whole fallen
# A worker that hangs is ended, by who waits for it or by the limit.
at=25 begin hung --silence 1000
kill -STOP "$(worker_of "$pid")"
kill -INT "$pid"
told() { until grep -q "$1" err; do sleep 0.1; done; }
told 'press Ctrl-C again to stop at once'
kill -INT "$pid"
ok "a worker that hangs is ended by a second Ctrl-C" ended 2
at='[0-9]*' begin hung --silence 6
kill -STOP "$(worker_of "$pid")"
ok "or by the limit" ended 2
ok "which is said" says 'in phase train: it sent no message for .* s and was ended as hung; assay train --resume hung continues' err
ok "a run that hung goes on" goes_on hung
ok "to the same end" same_as_whole hung
sed -i 's/^  seed: 42$/  seed: 7/' fallen/config.yaml
ok "another configuration is not gone on with" expect 64 train --resume fallen
ok "and that is said" says 'begun with another configuration: training: seed was 42 and is 7; start' err

# A rate far too high: the held-out loss rises, the run ends early, and the adapter is the best one's.
lora="{r: 4, alpha: 64}" config early.yaml "max_steps: 400" "eval_steps: 5" "early_stopping_patience: 2" \
	"load_best_model_at_end: true" "lr_scheduler_type: constant" "tensorboard: false"
sed -i 's/learning_rate: 1e-2/learning_rate: 0.3/' early.yaml
ok "a run that gets worse" expect 0 train early.yaml --out early --no-telemetry
ok "ends early" says 'stops early: the held-out loss did not improve in 2 evaluations' err
best=$(sed -n 's/.*the best was at step \([0-9]*\).*/\1/p' err)
ok "with the best adapter" cmp early/adapter/adapter_model.safetensors "early/checkpoint-$best/adapter_model.safetensors"
newest=$(cat early/latest)
ok "whose checkpoint is named" says "\"best_model_checkpoint\": \"checkpoint-$best\"" "early/$newest/trainer_state.json"
ok "which is not the last one" [ "$newest" != "checkpoint-$best" ]
echo x >> "early/checkpoint-$best/optimizer.bin"
sed -i '/"type":"end"/d; /"type":"close"/d' early/journal.jsonl
ok "a best one that is damaged costs no adapter" expect 0 train --resume early --no-telemetry
ok "it is put aside" says "optimizer.bin: .*it is renamed to early/checkpoint-$best.damaged" err
ok "the last one is said to be exported" says "the best checkpoint, of step $best, cannot be read; assay exports the last step, ${newest#checkpoint-}," err
ok "and is" cmp early/adapter/adapter_model.safetensors "early/$newest/adapter_model.safetensors"
sed -i '/"type":"end"/d; /"type":"close"/d' early/journal.jsonl
ok "the same once more" expect 0 train --resume early --no-telemetry
ok "and what is aside stays" [ -s "early/checkpoint-$best.damaged/optimizer.bin" ]

# Worse at every evaluation than before training: the best of them is exported, and that is said.
lora="{r: 4, alpha: 512}" config worse.yaml "max_steps: 2" "eval_steps: 2" "lr_scheduler_type: constant" "eval_on_start: true" "load_best_model_at_end: true" \
	"tensorboard: false"
sed -i 's/learning_rate: 1e-2/learning_rate: 3/' worse.yaml
ok "a run that never gets better than its start" expect 0 train worse.yaml --out worse --no-telemetry
ok "says so" says 'never fell below its value before training' err
ok "and leaves an adapter" [ -s worse/adapter/adapter_model.safetensors ]

# A warm-up's first step changes nothing: its checkpoint is written all the same.
lora="{r: 4, modules_to_save: [lm_head]}" config warm.yaml "max_steps: 3" "warmup_steps: 2" "save_steps: 1" "tensorboard: false"
ok "a module trained whole, saved before anything has changed" expect 0 train warm.yaml --out warm --no-telemetry
ok "has its adapter in the end" [ -s warm/adapter/adapter_model.safetensors ]

# refused NAME CODE WORDS: the configuration there is refused so
refused() {
	rm -rf refused
	expect "$2" train "$1" --out refused && says "$3" err
}
config steps.yaml "max_steps: 2"
cp -r model broken
shard=$(find broken -name '*.safetensors' | head -n 1)
truncate -s -100 "$shard"
model=broken config broken.yaml "max_steps: 2"
ok "a truncated shard is refused and named" refused broken.yaml 64 "$(basename "$shard")"
rm "$shard"
ok "a missing one too" refused broken.yaml 64 "$(basename "$shard")"
# A slip costs nothing: it is told before there is a folder, and a run that came to nothing is begun again.
data=nowhere.jsonl config slip.yaml "max_steps: 2"
ok "rows that are not there" refused slip.yaml 64 'data: train: cannot read .*nowhere.jsonl: No such file'
ok "leave no folder" [ ! -e refused ]
ok "and are told in a plan" expect 64 train slip.yaml --plan
template=nothing config slip.yaml
ok "no more does a template that there is not" refused slip.yaml 64 nothing
ok "which leaves none either" [ ! -e refused ]
lora="{r: 0}" config r0.yaml
ok "r 0" refused r0.yaml 64 'r: "0" is outside 1'
lora="{target_modules: [q_prj]}" config target.yaml
ok "an unknown target module, with the nearest" refused target.yaml 64 'did you mean "q_proj"'
: > empty.jsonl
data=empty.jsonl config empty.yaml "max_steps: 2"
ok "an empty file of rows" refused empty.yaml 64 'empty.jsonl'
echo '{"messages":[{"role":"user","content":"hello"}]}' > masked.jsonl
data=masked.jsonl config masked.yaml "max_steps: 2"
ok "rows of which nothing is to be learned" refused masked.yaml 64 'chat_template'
config zero.yaml "max_steps: 2"
sed -i 's/learning_rate: 1e-2/learning_rate: 0/' zero.yaml
ok "a learning rate of zero" refused zero.yaml 64 'learning_rate_zero: .*training: learning_rate'
ok "what came to nothing is begun again" expect 0 train steps.yaml --out refused --no-telemetry
ok "and that is said" says 'refused: the earlier run there made no step; starting it again' err
mkdir cut
cp refused/config.yaml cut
: > cut/journal.jsonl
touch "cut/config.yaml.$gone.new"
ok "a run that was cut before its journal" expect 0 train --resume cut --no-telemetry
ok "begins anew" says 'starting it again' err
ok "and is the same" cmp refused/adapter/adapter_model.safetensors cut/adapter/adapter_model.safetensors
config huge.yaml "max_steps: 30" "max_grad_norm: 0"
sed -i 's/learning_rate: 1e-2/learning_rate: 10/; s/alpha: 8/alpha: 100000/' huge.yaml
ok "a model that no longer learns ends the run" refused huge.yaml 1 'zero_gradient'
ok "and the setting is named" says 'a lower learning_rate' err
ok "its report says so too" expect 1 report refused
ok "in its headline" says 'cases failed; first train' out
ok "and asks nothing of the machine" eval '! says "operator input" out && [ ! -e refused/roofline.svg ]'
echo '{"messages":' >> masked.jsonl
cat rows.jsonl >> masked.jsonl
data=masked.jsonl config bad.yaml "max_steps: 2"
ok "a bad row is named by its line" refused bad.yaml 64 'masked.jsonl:2'
sed "s/}$/,$tools}/" held.jsonl > tools.jsonl
data=tools.jsonl template=smollm2 config smollm.yaml "max_steps: 2"
ok "tools that a template has no place for" refused smollm.yaml 64 'does not support tools; set model: chat_template'
length=16 config short.yaml "max_steps: 2"
ok "rows that are all too long" refused short.yaml 64 'max_seq_length'
cp -r model strange
sed -i 's/"id": 270,/"id": 9999,/' strange/tokenizer.json
model=strange config strange.yaml "max_steps: 2"
ok "a tokenizer that does not fit the model" refused strange.yaml 64 'tokenizer'
ok "no configuration" expect 64 train
ok "one that is not there" expect 64 train nowhere.yaml

cp -r model narrow
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 16/' narrow/config.json
model=narrow config narrow.yaml "max_steps: 1" "tensorboard: false"
ok "rows beyond the positions of the model are trained on" expect 0 train narrow.yaml --out narrow_run --no-telemetry
ok "with a warning" says 'training: 24 rows are longer than the model.s 16 positions' err

# Everything, instead of an adapter.
config everything.yaml "max_steps: 2" "full_finetuning: true" "gradient_checkpointing: true"
sed -i '/^lora:/d' everything.yaml
ok "full fine-tuning" expect 0 train everything.yaml --out everything
ok "gives a model's folder" sh -c '[ -s everything/model/config.json ] && [ -s everything/model/tokenizer.json ]'
ok "one that is finished has nothing to go on with" expect 0 train --resume everything
ok "which is said" says 'everything is finished' err
ok "and keeps its figures" says '^loss_first ' out
config begun.yaml "max_steps: 4" "save_steps: 2"
ok "a job that may begin again begins" expect 0 train begun.yaml --out begun --resume-if-exists
ok "and has nothing to do the next time" expect 0 train begun.yaml --out begun --resume-if-exists
ok "which is said too" says 'begun is finished' err
rm -rf begun/checkpoint-4 begun/adapter
sed -i '/"type":"end"/d; /"type":"close"/d' begun/journal.jsonl
echo "  output_dir: begun" >> begun.yaml
ok "one that was ended goes on, also where the configuration names the folder" expect 0 train begun.yaml --resume-if-exists
ok "from its newest checkpoint" says 'resumes from .*begun/checkpoint-2$' err
cp everything/model/model.safetensors first.safetensors
sed -i '/"type":"end"/d; /"type":"close"/d' everything/journal.jsonl
ok "one that was cut before it had said so ends again" expect 0 train --resume everything
ok "with the same" cmp first.safetensors everything/model/model.safetensors
ok "which is a model again" expect 0 merge everything/model --out copied
ok "an adapter is merged" expect 0 merge model whole/adapter --out merged --dtype f32

# What it says: the same with the adapter beside the weights, in them, and in a folder of its own.
answer() { "$assay" generate "$@" 'town 101?' --chat-template qwen2.5 --tokens 12 --json > out 2> err && sed -n 's/^ "text": //p' out; }
answer model > plain
answer model --adapter whole/adapter > beside
ok "text is made with the adapter" [ -s beside ]
ok "which it changes" sh -c '! cmp -s plain beside'
answer model --adapter whole/adapter --merge > within
ok "added to the weights it says the same" cmp beside within
answer merged > apart
ok "and so does the merged folder" cmp beside apart
answer model --temperature 1.5 --seed 3 > chosen
answer model --temperature 1.5 --seed 3 > again.txt
ok "the same seed chooses the same" cmp chosen again.txt
answer model --temperature 1.5 --seed 4 > again.txt
ok "and another one something else" sh -c '! cmp -s chosen again.txt'
sed 's/^{\(.*\),{"role":"assistant".*$/{\1],/' held.jsonl | head -n 1 > ask.json
echo "$tools}" >> ask.json
ok "a made model has a template of its own" expect 0 generate model "abc" --tokens 4
ok "a conversation with tools goes on" expect 0 generate model --messages ask.json --chat-template qwen2.5 --tokens 4
ok "a text by itself too" expect 0 generate model "abc" --raw --tokens 4 --json --logprobs
ok "with what was thought of each token" sh -c 'grep -A 4 "\"logprobs\"" out | grep -c "^  -[0-9]" | grep -qx 4'
ok "within the positions of the model nothing is warned of" eval '! says "positions" err'
ok "which is part of the JSON alone" expect 64 generate model "abc" --raw --logprobs
ok "a text beyond them is made" expect 0 generate narrow "abc" --raw --tokens 24
ok "with a warning" says 'warning: .* tokens, but the model supports 16 positions' err
ok "an adapter of other weights is refused" expect 64 merge second whole/adapter --out x
ok "with both names" says "whole/adapter: it is an adapter of .*/model, but second has other weights" err
ok "but for who asks for it" expect 0 generate second "abc" --raw --tokens 1 --adapter whole/adapter --any-base
ok "with a warning" says 'warning: .*has other weights' err
ok "one that begins with a dash as well" expect 0 generate model --raw --tokens 4 -- "-abc"
ok "a text that goes on has no template" expect 64 generate model "abc" --raw --chat-template qwen2.5
mkfifo speech
endless() { # by itself it would take minutes
	"$assay" generate model "abc" --raw --tokens 100000 > speech 2> err &
	pid=$!
	exec 3< speech
	head -c 1 <&3 > letter
}
over() {
	wait "$pid"
	[ $? = 2 ]
}
endless
kill -TERM "$pid"
ok "a text that is cut short is none" over
exec 3<&-
ok "and says how far it went" says 'stopped on request after' err
endless
exec 3<&-
ok "a text that nobody reads ends" over
ok "at once" sh -c '! grep -q . err'
reading() { # a prompt that takes long to read
	"$assay" generate model "$(yes abcd | head -c 120000)" --raw --tokens 1 > speech.out 2> err &
	pid=$!
	until grep -qs 'model.safetensors' "/proc/$pid/maps" || ! kill -0 "$pid"; do sleep 0.05; done
	kill -TERM "$pid"
}
reading
ok "a prompt that is being read is left on request" over
ok "and says how far it came" says 'stopped on request after .* tokens of the prompt' err
"$assay" make-model --shape qwen2-0.5b --holes --out other > out 2> err
ok "an adapter of another model is refused" expect 64 generate other "hello" --chat-template qwen2.5 --adapter whole/adapter
ok "and named" says 'whole/adapter' err
ok "a tokenizer of another model as well" expect 64 generate strange "hello" --chat-template qwen2.5
ok "and half a wish" expect 64 generate model "hello" --merge --chat-template qwen2.5
ok "no prompt" expect 64 generate model
# Words that contradict each other, or say too little: refused before anything is read, by name.
while IFS='|' read -r words sentence; do
	ok "refused: $words" eval "expect 64 $words && says '$sentence' err"
done << 'LIST'
train --resume whole --out x|--resume and --out cannot be combined
train --resume whole --plan|--resume and --plan cannot be combined
train --resume whole --resume-if-exists|--resume-if-exists and --resume cannot be combined
train whole.yaml --plan --resume-if-exists|--resume-if-exists and --plan cannot be combined
train whole.yaml --resume-if-exists|--resume-if-exists needs a run directory: --out or training: output_dir
train whole.yaml --out ""|--out is empty
train --resume ""|--resume is empty
train --resume theirs|theirs holds no run: journal.jsonl is not there
generate|no model given
generate model x --rows held.jsonl|give exactly one of TEXT, --messages FILE and --rows FILE
generate model x --raw --system y|--raw cannot be combined with --messages or --system
generate model --messages ask.json --system y|--system and --messages cannot be combined
generate model x --max-rows 2|--max-rows needs --rows
generate model "" --raw|the prompt is empty
merge|no model given: assay merge MODEL
merge model whole/adapter|no folder for the result given: assay merge MODEL
LIST

python=${ASSAY_TEST_PYTHON:-python3}
if "$python" -c 'import tensorboard' 2> /dev/null; then
	"$python" -B "$root/tests/oracles/train_events.py" whole/runs > events
	ok "TensorBoard reads every step" sh -c '[ "$(grep -c "^train/loss " events)" = 60 ] && [ "$(grep -c "^eval/loss " events)" = 3 ]'
else
	n=$((n + 1))
	echo "ok $n - TensorBoard reads every step # SKIP the Python package tensorboard is not installed"
fi
finish

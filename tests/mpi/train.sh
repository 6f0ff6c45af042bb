#!/bin/bash
# Training on CPU ranks under mpirun: losses beside one rank, the same bits on 1, 2 and 4 ranks, a run that goes on with another number of
# ranks, what is refused before weights are read, and ranks that die or hang.
# usage: train.sh ASSAY MODULE FAKE
. "$(dirname "$0")/training.sh"
rows 48 40
head -n 6 rows.jsonl > held.jsonl
# config NAME LINES..: lines are added to its training
config() {
	name=$1
	shift
	cat > "$name" << CONFIG
model: {name_or_path: ${model:-model}, chat_template: qwen2.5}
$([ "${full:-no}" = yes ] || echo "lora: {r: 4, alpha: 8, dropout: 0.1}")
data: {train: ${data:-rows.jsonl}, eval: held.jsonl, max_seq_length: 160, packing: ${packing:-true}}
training:
  device: cpu
  learning_rate: ${rate:-1e-2}
  global_batch_size: ${packs:-4}
  max_steps: ${steps:-6}
  eval_steps: ${every:-3}
  save_steps: ${every:-3}
$([ "${full:-no}" = no ] || printf '  full_finetuning: true\n  bucket_cap_mb: 0.1\n')
CONFIG
	for line; do echo "  $line" >> "$name"; done
}

# Losses beside one rank.
full=yes packing=false
config full.yaml
ok "one rank trains" train 0 1 full.yaml --out full.1 --json
losses out > one
telemetry='' # of one run that several ranks make
ok "four ranks train" train 0 4 full.yaml --out full.4 --json
unset telemetry
losses out > four
ok ".. with its losses" near one four
# Many steps, also with weights, gradient and states divided.
steps=$many rate=2e-3 every=$((many / 2))
for kind in lora full; do
	full=$([ $kind = full ] && echo yes || echo no)
	config long.$kind.yaml "max_grad_norm: 0.5" "lr_scheduler_type: constant"
	ok "one rank trains $many steps, $kind" train 0 1 long.$kind.yaml --out long.$kind.1 --json
	losses out > long_one
	for stage in 0 3; do
		config long.$kind.yaml "max_grad_norm: 0.5" "lr_scheduler_type: constant" "zero_stage: $stage"
		ok "four ranks as well, zero_stage: $stage" train 0 4 long.$kind.yaml --out long.$kind.$stage --json
		losses out > long_four
		ok ".. with its losses" near long_one long_four $many
		ok ".. and waits within a pass that count once" adds_up out
	done
done
steps=6 rate=1e-2 every=3 full=yes
ok "only rank 0 writes lines" [ "$(grep -c '"type":"step"' out)" = "$many" ]
ok "steps have the time in collectives" says '"comm_s":' out
ok "the journals of all ranks are with rank 0's" [ "$(find full.4/nodes -name journal.jsonl | wc -l)" = 3 ]
ok "nothing else is left of them" [ -z "$(find . -maxdepth 1 -name 'full.4.rank-*')" ]
ok "the result says how many there were" says '"ranks":4' full.4/journal.jsonl
full=yes packing=false
config halves.yaml "communication_data_type: bf16"
ok "four ranks train with gradients that travel in BF16" train 0 4 halves.yaml --out halves.4 --json
losses out > halved
apart() { paste one halved | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-3 * $1) bad = 1; if (d > 0) any = 1 } END { exit bad || !any || NR != 6 }'; }
ok ".. with losses within the error that is stated" apart
config halved_bits.yaml "communication_data_type: bf16" "deterministic: true"
ok "but not deterministically" train 64 4 halved_bits.yaml --out refused
ok ".. as the message says" says 'communication_data_type: bf16 rounds the gradients of several ranks, but deterministic' err
full=no packing=true
packs=12 steps=3
config wide.yaml
ok "three ranks train, with micro-batches of several packs" train 0 3 wide.yaml --out wide.3 --json
losses out > three
ok ".. with the losses of one" eval 'train 0 1 wide.yaml --out wide.1 --json && losses out > one && near one three 3'
packs=4 steps=6

# The same bits.
config bits.yaml "deterministic: true"
for ranks in 1 2 4; do
	ok "$ranks of them train deterministically" train 0 $ranks bits.yaml --out bits.$ranks
done
same() { cmp <(states "$1/checkpoint-6") <(states "$2/checkpoint-6") && cmp "$1/adapter/adapter_model.safetensors" "$2/adapter/adapter_model.safetensors"; }
ok "two ranks have the bits of one" same bits.1 bits.2
ok "four as well" same bits.1 bits.4
held() { sed -n 's/.*"eval_loss": \([-0-9.e+]*\),*/\1/p' "$1/checkpoint-6/trainer_state.json"; }
ok "and the held-out losses" [ "$(held bits.1)" = "$(held bits.4)" ]

# A run that goes on with another number of ranks: at each change, what came later is removed, as if the run had been killed there.
config steps.yaml "deterministic: true" "save_total_limit: 0"
sed -i 's/save_steps: 3/save_steps: 1/' steps.yaml
cut_at() { # DIR STEP
	for one in "$1"/checkpoint-*; do
		[ "${one##*-}" -le "$2" ] || rm -rf "$one"
	done
	rm -rf "$1/adapter"
	sed -i '/"type":"end"/d; /"type":"close"/d' "$1/journal.jsonl"
}
goes_on() { # RANKS STEP: the run in chain goes on from this step with so many ranks
	cut_at chain "$2" && train 0 "$1" --resume chain && says "resumes from chain/checkpoint-$2\$" err
}
ok "one rank begins" train 0 1 steps.yaml --out chain
ok "two go on" goes_on 2 2
ok "four go on" goes_on 4 4
ok "one ends it" goes_on 1 5
ok "with the bits of a run without interruption" same bits.1 chain
asked() { # a request to stop that reaches one rank only
	"$assay" launch --how mpirun --ranks-per-node 2 -- train long.yaml --no-telemetry --out asked > out 2> err &
	launch=$!
	for _ in $(seq 600); do
		[ -e asked/checkpoint-3 ] && break
		sleep 0.1
	done
	where=asked
	kill -TERM "$(of_rank 1)"
	wait $launch
	[ $? = 75 ] # saved, to be continued
}

# What is refused, before weights are read.
refused() { # WORDS: nothing was made
	says "$1" err && [ ! -e refused/checkpoint-3 ] && ! says '"phase":"train"' refused/journal.jsonl
}
packs=6
config odd.yaml
ok "packs that ranks cannot share are refused" train 64 4 odd.yaml --out refused
ok ".. with the numbers" says 'a step has 6 packs (training: global_batch_size), which 4 ranks with 1 packs per micro-batch' err
packs=4
head -n 3 rows.jsonl > few.jsonl
data=few.jsonl packing=false
config few.yaml
data=rows.jsonl packing=true
ok "too few rows are refused" train 64 4 few.yaml --out refused
ok ".. with their number" refused '3 rows make 3 packs, which is too few for 4 ranks'
rm -rf refused
# by_rank COMMAND: each rank runs it in a shell, with $r
by_rank() {
	started 2 sh -c 'r=$OMPI_COMM_WORLD_RANK; '"$1" > out 2> err
	code=$?
}
export assay
sed 's/1e-2/2e-2/' bits.yaml > other.yaml
by_rank 'c=bits.yaml; [ $r = 0 ] || c=other.yaml; exec "$assay" train $c --out refused'
ok "another configuration is refused" [ $code = 64 ]
ok ".. with the setting" says 'rank 1 on .*: its configuration is not that of rank 0: "learning_rate: 0.02" here, "learning_rate: 0.01" there' err
ok ".. before a folder is made" [ ! -e refused ]
# Another build: the same program with another build id.
other_build() {
	# Linkers differ in its length, and the program compares its first bytes. They begin behind 16 bytes of the note.
	objcopy --dump-section .note.gnu.build-id=note "$assay" other_assay &&
		{ head -c 16 note; tail -c +17 note | head -c 1 | LC_ALL=C tr '\000-\377' '\001-\377\000'; tail -c +18 note; } > new_note &&
		objcopy --update-section .note.gnu.build-id=new_note "$assay" other_assay && ! cmp -s note new_note
}
if command -v objcopy > /dev/null; then
	ok "another build of the program is made" other_build
	export other="$tmp/other_assay"
	by_rank 'p=$assay; [ $r = 0 ] || p=$other; exec "$p" train bits.yaml --out refused'
	ok ".. and refused" [ $code != 0 ]
	ok ".. with both" says 'rank 1 on .* runs assay .*, build [0-9a-f]*, and rank 0 on .* runs .*, build [0-9a-f]*' err
	ok ".. before a folder is made" [ ! -e refused ]
	rm -f other_assay
else
	untested "another build is refused" "objcopy is not installed"
fi
mkdir -p here there
sed "s/town 7 /town 9 /" rows.jsonl > there/rows.jsonl
cp rows.jsonl here/
cp held.jsonl here && cp held.jsonl there
ln -s ../model here/model
ln -s ../model there/model
mkdir -p mnt
data=$tmp/mnt/rows.jsonl
config apart.yaml
data=rows.jsonl
# A folder that is another one on each rank, as a disk that is not shared: needs a mount namespace.
if unshare -m true 2> /dev/null; then
	private='f=here; [ $r = 0 ] || f=there; exec unshare -m sh -c "mount --bind $f mnt && exec \"\$assay\" train apart.yaml --out refused"'
	by_rank "$private"
	ok "other rows under the same name are refused" [ $code = 64 ]
	ok ".. with the file" says 'mnt/rows.jsonl: the training rows of rank 1 are not those of rank 0' err
	rm -rf refused there/rows.jsonl
	by_rank "$private"
	ok "a disk that is not shared is refused" [ $code = 64 ]
	ok ".. with the rank and the file" says 'rank 1 on .*mnt/rows.jsonl' err
	rm -rf refused
	"$assay" make-model --shape tiny --seed 2 --out another > /dev/null
	model=$tmp/mnt
	config models.yaml
	by_rank 'f=model; [ $r = 0 ] || f=another; exec unshare -m sh -c "mount --bind $f mnt && exec \"\$assay\" train models.yaml --out refused"'
	ok "another model under the same name is refused" [ $code = 64 ]
	ok ".. with the folder" says 'mnt: the model of rank 1 are not those of rank 0' err
	model=model
else
	untested "ranks that read other files are refused" "no mount namespaces here"
fi
rm -rf refused
plain() { ASSAY_SIZE=2 ASSAY_LOCAL_SIZE=2 ASSAY_HOST=127.0.0.1 true; expect 2 launch --how plain --ranks-per-node 2 -- train bits.yaml --out refused; }
ok "ranks that no MPI launcher started are refused" plain
ok ".. with what starts them" says 'no MPI launcher started these ranks: use assay launch --how mpirun, mpirun, or srun --mpi=pmix' err
rm -rf refused

# Ranks that die or hang while all train. Rank 0's words name the culprit, and the last checkpoint stands.
steps=400
config long.yaml "deterministic: true" "save_total_limit: 2"
sed -i 's/eval_steps: 3/eval_steps: 0/' long.yaml
of_rank() { # RANK: its supervisor
	for one in $(grep -lzxF "PMIX_RANK=$1" /proc/[0-9]*/environ 2> /dev/null); do
		one=${one%/environ}
		tr '\0' ' ' < "$one/cmdline" 2> /dev/null | grep -q "__ranks .*--out $where" && pgrep -P "${one#/proc/}"
	done 2> /dev/null | head -n 1
}
fault() { # RANK PROCESS SIGNAL: rank 0's words in err
	where=fault.$1.$2.$3
	"$assay" launch --how mpirun --ranks-per-node 4 -- train long.yaml --silence 20s --no-telemetry --out "$where" > out 2> err &
	launch=$!
	for _ in $(seq 600); do
		[ -e "$where/checkpoint-3" ] && break
		sleep 0.1
	done
	at=$(of_rank "$1")
	[ "$2" = supervisor ] || at=$(pgrep -P "$at" -f __trainer)
	kill "-$3" "$at"
	wait $launch
	code=$?
	# a slow machine may have removed the third step's for later ones
	[ $code = 2 ] && [ -n "$(find "$where" -maxdepth 1 -name 'checkpoint-*')" ] && [ -z "$(find "$where" -name '*.damaged')" ]
}
ok "a request to stop that one rank gets stops all after the same step" asked
ok ".. and is saved" says 'stopped on request; assay train --resume asked continues from the newest checkpoint, of step' err
ok "a rank whose training process is killed ends all" fault 2 worker KILL
ok ".. and is named" says 'error: rank 2 on .*: the training process ended in phase train: signal 9 (Killed); assay train --resume fault.2.worker.KILL continues' err
ok "rank 0's as well" fault 0 worker KILL
ok ".. and is named" says 'error: the training process ended in phase train: signal 9 (Killed); assay train --resume' err
ok "a rank that is killed ends all" fault 1 supervisor KILL
ok ".. and is named" says 'error: lost rank 1 on .*; assay train --resume' err
ok "a training process that hangs ends all" fault 3 worker STOP
ok ".. and is named, with the collective" says 'error: rank 3 on .* \(never entered collective [0-9]* .* its process is stopped\|is stopped (SIGSTOP) in collective\)' err
finish

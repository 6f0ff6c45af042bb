#!/bin/bash
# Checkpoints of several CPU ranks under mpirun, each rank its shard: resumed on 1, 2, 4 and 1 ranks with the same bits, ranks that are
# killed in each phase of a save, shards that are missing or cut, and a run directory that not all ranks see.
# usage: train_shards.sh ASSAY MODULE FAKE STRIKE
strike=$(realpath "$4") || exit 1
. "$(dirname "$0")/training.sh"
rows 24 40
# config NAME WHAT LINES..: what is trained; lines are added to its training
config() {
	name=$1 what=$2
	shift 2
	cat > "$name" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
$what
data: {train: rows.jsonl, max_seq_length: 160}
training:
  device: cpu
  deterministic: true
  learning_rate: 1e-2
  global_batch_size: 4
  max_steps: 6
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
same() { cmp <(states "$1/checkpoint-6") <(states "$2/checkpoint-6"); }

# All weights: 1, 2, 4 and 1 ranks.
config full.yaml "" "full_finetuning: true" "save_steps: 1" "save_total_limit: 0"
ok "one rank trains" train 0 1 full.yaml --out whole
ok "it writes one file, as before" eval '[ -s whole/checkpoint-6/optimizer.bin ] && says "\"schema\": 1" whole/checkpoint-6/checkpoint.json'
cut_at() { # DIR STEP: as if the run had been killed there
	for one in "$1"/checkpoint-*; do
		[ "${one##*-}" -le "$2" ] || rm -rf "$one"
	done
	rm -rf "$1/model"
	sed -i '/"type":"end"/d; /"type":"close"/d' "$1/journal.jsonl"
}
goes_on() { # RANKS STEP: the run in chain goes on from this step with so many ranks
	cut_at chain "$2" && train 0 "$1" --resume chain && says "resumes from chain/checkpoint-$2\$" err
}
ok "one rank begins" train 0 1 full.yaml --out chain
ok "two go on" goes_on 2 2
ok ".. and write a shard each" eval '[ -s chain/checkpoint-6/optimizer-00001-of-00002.bin ] && [ -s chain/checkpoint-6/optimizer-00002-of-00002.bin ]'
ok "four go on" goes_on 4 4
ok ".. and write a shard each" [ "$(find chain/checkpoint-6 -name 'optimizer-0000?-of-00004.bin' | wc -l)" = 4 ]
ok "one ends it" goes_on 1 5
ok "with the bits of a run without interruption" same whole chain
ok "the model is the same" cmp whole/model/model.safetensors chain/model/model.safetensors
ok "nothing temporary is left" [ -z "$(find chain \( -name '*.new*' -o -name '.shared*' \))" ]

# An adapter: the checkpoint has the shards and the adapter.
config lora.yaml "lora: {r: 4, alpha: 8, dropout: 0.1}" "save_steps: 3"
ok "four ranks train an adapter" train 0 4 lora.yaml --out lora
ok ".. whose checkpoints have it" eval '[ -s lora/checkpoint-3/adapter_model.safetensors ] && [ "$(find lora/checkpoint-3 -name "optimizer-*" | wc -l)" = 4 ]'
ok ".. and so has the run" eval '[ -s lora/adapter/adapter_model.safetensors ] && cmp lora/adapter/adapter_model.safetensors lora/checkpoint-6/adapter_model.safetensors'

# Shards that are missing or cut.
cp -r lora missing
cut_at missing 6
rm -r missing/checkpoint-6/optimizer-00003-of-00004.bin missing/adapter
ok "a missing shard is refused" train 64 2 --resume missing
ok ".. with its file and rank" says 'missing/checkpoint-6/optimizer-00003-of-00004.bin is not there; rank 2 wrote it: the run directory must be on a disk' err
ok ".. before weights are read" eval '! says "\"phase\":\"train\"" missing/journal.jsonl || [ -z "$(find missing -name adapter)" ]'
ok ".. and nothing is renamed" [ -d missing/checkpoint-6 ]
cp -r lora cut
cut_at cut 6
rm -r cut/adapter
truncate -s 100 cut/checkpoint-6/optimizer-00002-of-00004.bin
ok "beside a cut shard the checkpoint before is used" train 0 2 --resume cut
ok ".. with its file and rank" says 'cut/checkpoint-6/optimizer-00002-of-00004.bin is cut: it has 100 bytes, and rank 1 wrote' err
ok ".. and the result is the same" cmp lora/adapter/adapter_model.safetensors cut/adapter/adapter_model.safetensors

# A run directory that rank 1 does not see: rank 0 writes alone.
if unshare -m true 2> /dev/null; then
	mkdir -p mnt/0 mnt/1
	started 2 sh -c 'exec unshare -m sh -c "mount --bind mnt/$OMPI_COMM_WORLD_RANK mnt && exec \"$0\" train lora.yaml --no-telemetry --out mnt/apart"' "$assay" > out 2> err
	ok "ranks with folders of their own train" [ $? = 0 ]
	ok ".. with a warning that names the rank" says 'mnt/apart: rank 1 does not see this run directory, so rank 0 writes the checkpoints alone' err
	ok ".. and one file" [ -s mnt/0/apart/checkpoint-6/optimizer.bin ]
	# Ranks that divide the states: rank 0 collects them, and gives each its range after a resume.
	config collected.yaml "" "full_finetuning: true" "zero_stage: 2" "save_steps: 3" "save_total_limit: 0"
	apart() { # WORDS..: two ranks train with folders of their own
		started 2 sh -c 'exec unshare -m sh -c "mount --bind mnt/$OMPI_COMM_WORLD_RANK mnt && exec \"\$0\" train --no-telemetry \"\$@\"" "$0" "$@"' "$assay" "$@" > out 2> err
	}
	ok "ranks that divide their states train so" apart collected.yaml --out mnt/collected
	ok ".. rank 0 writes one file, with the bits of one rank" eval '[ -s mnt/0/collected/checkpoint-6/optimizer.bin ] && same whole mnt/0/collected'
	cut_at mnt/0/collected 3
	ok ".. and gives each rank its range after a resume" eval 'apart --resume mnt/collected && says "resumes from mnt/collected/checkpoint-3$" err && same whole mnt/0/collected'
	ok ".. and exports the model" cmp whole/model/model.safetensors mnt/0/collected/model/model.safetensors
else
	untested "ranks with folders of their own" "no mount namespaces here"
fi

# A rank is killed in each phase of the save of step 6. The checkpoint of step 3 stands, and the run ends with the same bits. Then the same
# with ranks that divide weights, gradient and states. Two ranks go on from there.
killed() { # RANK CALL PATTERN SKIP
	rm -rf struck
	started $writers env LD_PRELOAD="$strike${LD_PRELOAD:+:$LD_PRELOAD}" STRIKE_RANK="$1" STRIKE_CALL="$2" STRIKE_PATH="$3" STRIKE_SKIP="$4" "$assay" train $kind.yaml --silence 60s --no-telemetry --out struck > out 2> err
	[ $? = 2 ] && says "signal 9 (Killed)" err && [ -d struck/checkpoint-3 ] && [ "$(cat struck/latest)" = checkpoint-3 ]
}
again() { train 0 2 --resume struck && says "resumes from struck/checkpoint-$1\$" err && same $as struck && [ -z "$(find struck -name '*.new*' -o -name '*.damaged')" ]; }
phase() { # TEXT RANK CALL PATTERN [STEP [SKIP]]
	ok "$kind: killed $1: the run ends" killed "$2" "$3" "$4" "${6:-0}"
	ok ".. and goes on from an intact checkpoint" again "${5:-3}"
}
config divided.yaml "" "full_finetuning: true" "zero_stage: 3" "save_steps: 3" "save_total_limit: 0"
for kind in lora divided; do
	as=$([ $kind = lora ] && echo lora || echo whole)
	writers=$([ $kind = lora ] && echo 2 || echo 4)
	last=$((writers - 1))
	phase "before it writes its shard" $((writers / 2)) open '*checkpoint-6.new*'
	phase "before its shard is on the disk" 1 fsync '*checkpoint-6.new*optimizer-00002-of-0000'$writers'.bin*'
	phase "before its shard has its name" $last rename '*checkpoint-6.new*optimizer-0000'$writers-of-0000$writers'.bin*'
	phase "after its shard has its name" $last fsync '*checkpoint-6.new-????????????????'
	phase "rank 0, before the manifest" 0 open '*checkpoint-6.new*checkpoint.json*'
	phase "rank 0, before the folder has its name" 0 renameat2 '*checkpoint-6.new*'
	phase "rank 0, after the folder has its name" 0 open '*/latest*' 6 1
done
finish

#!/bin/bash
# assay launch --restarts with ranks of this node on GPUs that are not there: a run that lost a rank is started again and ends with the bits of an
# undisturbed one. usage: train_restarts_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
. "$here/train_ranks.sh"
config run.yaml "deterministic: true" "save_steps: 2"
sed -i 's/max_steps: 4/max_steps: 6/; /eval_steps/d; s/, eval: held.jsonl//' run.yaml
launch() { # CODE RESTARTS WORDS..
	want=$1 restarts=$2
	shift 2
	timeout 120 "$assay" launch --how plain --ranks-per-node 2 --restarts "$restarts" -- train "$@" --no-telemetry > out 2> err
	[ $? = "$want" ]
}
same() { cmp whole/adapter/adapter_model.safetensors "$1/adapter/adapter_model.safetensors"; }
export STRIKE_RANK=1 STRIKE_CALL=open STRIKE_PATH='*checkpoint-4.new*' STRIKE_ONCE=$tmp/once
ok "two ranks train" launch 0 1 run.yaml --out whole
ok ".. without a restart" eval '! says "restart" err'
ok ".. on a GPU each" eval 'says "8D:00.0" whole/journal.jsonl && says "8E:00.0" whole/nodes/*/rank-1/journal.jsonl'
lost() { LD_PRELOAD=$fakes/strike.so launch "$@"; }
ok "a run that loses a rank starts again, and ends well" lost 0 1 run.yaml --out lost
ok ".. which is told" says 'warning: restart 1 of 1: the ranks start again' err
ok ".. with the rank that was lost" says 'rank 1 on .*: the training process ended in phase train: signal 9 (Killed)' err
ok ".. from the newest checkpoint" says 'resumes from lost/checkpoint-2$' err
ok ".. with the bits of a run without a loss" same lost
unset STRIKE_ONCE
ok "a rank that is lost each time ends the run after the last restart" lost 2 1 run.yaml --out twice
ok ".. which was tried once" [ "$(grep -c 'the ranks start again' err)" = 1 ]
sed 's/global_batch_size: 4/global_batch_size: 3/' run.yaml > odd.yaml
ok "an error of the configuration is no reason to restart" launch 64 3 odd.yaml --out odd
ok ".. and is told once" eval '! says "restart" err'
finish

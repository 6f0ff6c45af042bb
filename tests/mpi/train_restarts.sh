#!/bin/bash
# assay launch --restarts and preemption, with CPU ranks under mpirun: a run that lost a rank is started again and ends with the bits of an
# undisturbed one; USR1 and TERM save a checkpoint and end with 75.
# usage: train_restarts.sh ASSAY MODULE FAKE STRIKE
strike=$(realpath "$4") || exit 1
. "$(dirname "$0")/training.sh"
rows 24 40
config() { # NAME STEPS
	cat > "$1" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
lora: {r: 4, alpha: 8, dropout: 0.1}
data: {train: rows.jsonl, max_seq_length: 160}
training: {device: cpu, deterministic: true, learning_rate: 1e-2, global_batch_size: 4, max_steps: $2, save_steps: 2}
CONFIG
}
config run.yaml 6
launch() { # CODE RESTARTS WORDS..
	want=$1 restarts=$2
	shift 2
	"$assay" launch --how mpirun --ranks-per-node 2 --restarts "$restarts" -- train "$@" --no-telemetry > out 2> err
	[ $? = "$want" ]
}
same() { cmp whole/adapter/adapter_model.safetensors "$1/adapter/adapter_model.safetensors"; }
export STRIKE_RANK=1 STRIKE_CALL=open STRIKE_PATH='*checkpoint-4.new*' STRIKE_ONCE=$tmp/once

ok "two ranks train" launch 0 1 run.yaml --out whole
ok ".. without a restart" eval '! says "restart" err'
lost() { LD_PRELOAD=$strike${LD_PRELOAD:+:$LD_PRELOAD} launch "$@"; }
ok "a run that loses a rank starts again, and ends well" lost 0 1 run.yaml --out lost
ok ".. which is told" says 'warning: restart 1 of 1: the ranks start again' err
ok ".. with the rank that was lost" says 'rank 1 on .*: the training process ended in phase train: signal 9 (Killed)' err
ok ".. from the newest checkpoint" says 'resumes from lost/checkpoint-2$' err
ok ".. with the bits of a run without a loss" same lost
unset STRIKE_ONCE
ok "a rank that is lost each time ends the run after the last restart" lost 2 1 run.yaml --out twice
ok ".. which was tried once" [ "$(grep -c 'the ranks start again' err)" = 1 ]
ok ".. and can be continued" eval 'launch 0 0 --resume twice && same twice'
STRIKE_PATH='*checkpoint-2.new*' STRIKE_ONCE=$tmp/first
export STRIKE_ONCE
ok "a run that is lost before its first checkpoint begins again" eval 'lost 0 2 run.yaml --out first && same first'

# What is refused, before anything starts.
sed 's/global_batch_size: 4/global_batch_size: 3/' run.yaml > odd.yaml
ok "an error of the configuration is no reason to restart" launch 64 3 odd.yaml --out odd
ok ".. and is told once" eval '! says "restart" err'
expect 64 launch --restarts 1 -- check quick
ok "--restarts is for train" says 'error: --restarts works only with train, not with check' err
expect 64 launch --how mpirun --ranks-per-node 2 --restarts 1 -- train run.yaml
ok "--restarts needs a run directory" says 'error: --restarts needs a run directory: give train --out DIR' err
expect 64 launch --how slurm --nodes 2 --gpus-per-node 1 --restarts 1 -- train run.yaml --out x
ok "Slurm restarts by itself" says 'error: --restarts does not work with --how slurm: Slurm queues the job again by itself' err

# Preemption: USR1 and TERM for the launcher, for a rank, and for a run of one process.
config long.yaml 4000
begun() { # DIR: it has saved a checkpoint
	for _ in $(seq 1200); do
		[ -e "$1/checkpoint-2" ] && return
		sleep 0.1
	done
	return 1
}
signalled() { # SIGNAL DIR CODE
	"$assay" launch --how mpirun --ranks-per-node 2 --restarts 1 -- train long.yaml --no-telemetry --out "$2" > out 2> err &
	launch=$!
	begun "$2"
	kill "-$1" $launch
	wait $launch
	[ $? = "$3" ]
}
saved() { [ -e "$1/checkpoint-$(sed 's/checkpoint-//' "$1/latest")/checkpoint.json" ] && says "stopped on request; assay train --resume $1 continues from the newest checkpoint" err && ! says "the ranks start again" err; }
ok "USR1 for the launcher ends the run with 75" signalled USR1 usr1 75
ok ".. after it has saved" saved usr1
ok "TERM as well" signalled TERM term 75
ok ".. after it has saved" saved term
alone() { # SIGNAL DIR CODE
	"$assay" train long.yaml --no-telemetry --out "$2" > out 2> err &
	run=$!
	begun "$2"
	kill "-$1" $run
	wait $run
	[ $? = "$3" ]
}
ok "USR1 for a run of one process" eval 'alone USR1 one.usr1 75 && saved one.usr1'
ok "TERM for a run of one process" eval 'alone TERM one.term 75 && saved one.term'
ok "Ctrl-C is not a preemption" eval 'set -m; alone INT one.int 2; code=$?; set +m; [ $code = 0 ] && saved one.int'
rank() { # a rank is told, and the launcher is not: it starts the ranks again
	"$assay" launch --how mpirun --ranks-per-node 2 --restarts 1 -- train long.yaml --no-telemetry --out rank > out 2> err &
	launch=$!
	begun rank
	for one in $(grep -lzxF "PMIX_RANK=1" /proc/[0-9]*/environ 2> /dev/null); do
		one=${one%/environ}
		tr '\0' ' ' < "$one/cmdline" 2> /dev/null | grep -q "__ranks .*--out rank" && kill -USR1 $(pgrep -P "${one#/proc/}")
	done 2> /dev/null
	for _ in $(seq 1200); do
		says 'resumes from rank/checkpoint-' err && break
		sleep 0.1
	done
	kill -USR1 $launch
	wait $launch
	[ $? = 75 ]
}
ok "a rank that is preempted alone is started again" rank
ok ".. with the others" says 'warning: restart 1 of 1: the ranks start again' err
finish

#!/bin/sh
# The run directory of a training run is removed, moved, replaced or closed while it works, before, at and during a checkpoint:
# it ends within two steps, one message says what happened and whether the run can be resumed, and that is true.
# usage: train_lost.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too
chmod 755 .

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
for i in $(seq 24); do
	echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
config() { # NAME SAVE_STEPS ACCUMULATED
	cat > "$1" << CONFIG
model: {name_or_path: $PWD/model, chat_template: qwen2.5}
lora: {r: 4, alpha: 8}
data: {train: $PWD/rows.jsonl, max_seq_length: 160}
training:
  device: cpu
  per_device_train_batch_size: 1
  gradient_accumulation_steps: $3
  max_steps: 100000
  save_steps: $2
  save_total_limit: 2
  tensorboard: false
CONFIG
}
config slow.yaml 3 16
config rare.yaml 50000 16
config often.yaml 1 1

# begin STEP CONFIG DIR: a run that has told step STEP
begin() {
	: > err # which still has the words of the run before
	"$assay" train "$2" --out "$3" --no-telemetry --silence 60 > out 2> err &
	pid=$!
	until grep -q "^assay: step $1/" err || ! kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
}
last_told() { sed -n 's/^assay: step \([0-9]*\)\/.*/\1/p' err | tail -n 1; }
ended() { # CODE
	wait "$pid"
	code=$?
	[ "$code" = "$1" ]
}
# within STEP: it made at most two steps more than those told then
within() {
	stopped=$(sed -n 's/.*training stopped after step \([0-9]*\).*/\1/p' err)
	[ -n "$stopped" ] && [ "$stopped" -le $(($1 + 2)) ] || { echo "step $1, then $stopped"; return 1; }
}
# Of resuming one line speaks, and it says one thing.
one_word() { [ "$(grep -c 'resume' err)" = 1 ] && [ "$(grep -c 'cannot be resumed\|continues from\|begins at' err)" = 1 ]; }

resumed() {
	: > err
	"$assay" train --resume "$1" --no-telemetry > out 2> err &
	pid=$!
	until grep -q "^assay: step [0-9]" err || ! kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
	kill -TERM "$pid"
	ended 75 && says "resumes from .*checkpoint-$2\$\|starting it again\|the run starts over" err
}
# What is said of resuming is so: who removes files may meet a checkpoint that is being written, which then stays.
true_word() { # DIR
	cp err said
	if grep -q 'cannot be resumed' said; then
		! expect 0 train --resume "$1" && ! says 'step [0-9]' err
	else
		resumed "$1" "$(sed -n 's/.*newest checkpoint, of step \([0-9]*\)$/\1/p' said)"
	fi
}
begin 5 slow.yaml gone
until rm -rf gone 2> /dev/null; do :; done
told=$(last_told)
ok "a removed directory ends the run, inconclusive" ended 2
ok "within two steps" within "$told"
ok "what happened is said" says 'error: .*gone/journal.jsonl was removed during the run\|error: gone was removed' err
ok "and nothing else" one_word
ok "which is true" true_word gone

begin 5 rare.yaml old
mv old new
told=$(last_told)
ok "a moved directory ends the run, inconclusive" ended 2
ok "within two steps" within "$told"
ok "both names are told" says 'error: old was moved to .*/new during the run' err
step=$(sed -n 's/.*training stopped after step \([0-9]*\);.*/\1/p' err)
ok "and how to go on, from the last step" says "assay train --resume .*/new continues from the newest checkpoint, of step $step\$" err
ok "and nothing else" one_word
ok "nothing is left at the old name" [ ! -e old ]
ok "it goes on there" resumed new "$step"

begin 5 slow.yaml theirs
mv theirs ours
mkdir theirs
echo mine > theirs/file
ok "another folder in its place ends the run" ended 2
ok "the new place is told" says 'theirs was moved to .*/ours during the run' err
ok "and how to go on there" says 'assay train --resume .*/ours continues' err
ok "the other folder stays as it is" [ "$(ls theirs)" = file ]
begin 5 slow.yaml lost
mv lost away && mkdir lost
until rm -rf away 2> /dev/null; do :; done
ok "so does one where it was removed" ended 2
ok "with one word" one_word
ok "and no checkpoint goes into the other folder" sh -c '! ls -d lost/checkpoint-*'

# A superuser may write everywhere: another user is asked then.
mkdir -m 777 shut
as=
[ "$(id -u)" != 0 ] || as="setpriv --reuid 65534 --regid 65534 --clear-groups"
if $as true 2> /dev/null; then
	shut_begin() { # CONFIG DIR
		: > err
		(cd / && exec $as "$assay" train "$tmp/$1" --out "$tmp/shut/$2" --no-telemetry) > out 2> err &
		pid=$!
		until grep -q "^assay: step 5/" err || ! kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
		chmod 555 "shut/$2"
		told=$(last_told)
	}
	shut_begin slow.yaml run
	ok "a directory that takes no files any more ends the run" ended 2
	ok "within two steps" within "$told"
	ok "which is said" says 'error: .*/shut/run is no longer writable (Permission denied)' err
	ok "and what to do" says 'make it writable again, then assay train --resume .*/shut/run continues from the newest checkpoint, of step' err
	ok "and nothing else" one_word
	chmod 755 shut/run
	newest=$(cat shut/run/latest)
	ok "it goes on" resumed shut/run "${newest#checkpoint-}"
	shut_begin rare.yaml early
	ok "so does one without a checkpoint" ended 2
	ok "where that is said" says 'then assay train --resume .*/shut/early begins at the first step, because there is no checkpoint' err
	chmod 755 shut/early
else
	ok "a directory that takes no files any more # SKIP no other user can be asked" true
fi

# At the beginning of a checkpoint, and within: whichever moment it is, one true message.
struck() { # TRIAL
	begin 3 often.yaml "at$1"
	if [ $(($1 % 2)) = 0 ]; then # within one
		for _ in $(seq 400); do ls -d "at$1"/*.new > /dev/null 2>&1 && break; done
	fi
	# All at once, as the run sees it: what it says of resuming cannot foresee which files go next.
	# shellcheck disable=SC2046
	kill -STOP "$pid" $(pgrep -P "$pid")
	rm -rf "at$1"
	# shellcheck disable=SC2046
	kill -CONT "$pid" $(pgrep -P "$pid")
	ended 2 && one_word && true_word "at$1" || { tail -n 3 said err; ls -R "at$1"; return 1; }
}
for trial in 1 2 3 4; do ok "removed around a checkpoint, trial $trial" struck "$trial"; done
moved() { # TRIAL
	begin 3 often.yaml "mv$1"
	if [ $(($1 % 2)) = 0 ]; then
		for _ in $(seq 400); do ls -d "mv$1"/*.new > /dev/null 2>&1 && break; done
	fi
	mv "mv$1" "to$1"
	ended 2 && one_word && says "assay train --resume .*/to$1 continues" err && [ ! -e "mv$1" ] ||
		{ cat err; ls; return 1; }
}
for trial in 1 2; do ok "moved around a checkpoint, trial $trial" moved "$trial"; done

# The journal alone: what resuming needs stays or is written again.
begin 5 slow.yaml journal
rm journal/journal.jsonl
told=$(last_told)
ok "a removed journal ends the run" ended 2
ok "within two steps" within "$told"
ok "it is written again, which is said" says 'journal.jsonl was removed during the run.* is written there again; training stopped after step' err
ok "and how to go on" says 'assay train --resume journal continues from the newest checkpoint' err
ok "and nothing else" one_word
newest=$(cat journal/latest)
ok "it does" resumed journal "${newest#checkpoint-}"
begin 5 slow.yaml taken
rm taken/journal.jsonl
echo mine > taken/journal.jsonl
ok "one that was replaced ends it too" ended 2
ok "with the place of ours" says 'journal.jsonl was replaced .* is in taken/journal.jsonl.1; training stopped' err
ok "and no promise" says 'the run cannot be resumed' err
ok "no second word" one_word

# Signals: QUIT as Ctrl-C; PIPE when who reads the output is gone.
begin 5 slow.yaml quit
kill -QUIT "$pid"
ok "QUIT ends it as TERM does" ended 2
ok "which is said" says 'stopped on request; assay train --resume quit continues from the newest checkpoint' err
ok "in the journal too" says '"ending":"cancelled","status":"cancelled"' quit/journal.jsonl
newest=$(cat quit/latest)
ok "it goes on" resumed quit "${newest#checkpoint-}"
begin 5 slow.yaml pipe
kill -PIPE "$pid"
ok "PIPE does" ended 2
ok "and is said" says 'stopped on request; assay train --resume pipe continues' err
unread() {
	mkfifo steps
	"$assay" train slow.yaml --out unread --no-telemetry --json > steps 2> err &
	pid=$!
	head -n 3 steps > /dev/null
	ended 2
}
ok "output that nobody reads any more ends it" unread
ok "with a checkpoint" [ -s unread/latest ]
ok "and a journal that is closed" says '"type":"close","ending":"cancelled"' unread/journal.jsonl
finish

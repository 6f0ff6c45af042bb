#!/bin/sh
# assay demo: steps that fail, crash or leave nothing, a speaker, Ctrl-C, and a full disk.
# usage: demo_ends.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
. "$here/demo_stand.sh"

# -- what goes wrong in the middle --
echo "echo '{\"headline\": \"fail: 2 of 3 limits missed\"}' > \$dir/results.json; exit 1" > how.load
ok "a failed step fails the tour" tour 1 failed quick --steps machine,load,answer
ok "with the command's own words" is load failed "2 of 3 limits missed"
ok "and the page says so" says 'header class="v-fail"' failed/demo.html
rm how.load
echo 'kill -SEGV $$' > how.train
ok "a crash is inconclusive" tour 2 crashed quick --steps answer,weights
ok "and is told" is train inconclusive "signal 11"
ok "the steps after it run all the same" is weights passed
ok "the step that needs it says what is missing" is answer inconclusive "step-5-train/run/model"
echo 'echo "assay: error: no space left" >&2; exit 2' > how.train
ok "a command that left nothing is inconclusive" eval 'tour 2 nothing quick --steps train && is train inconclusive'
ok "with its last message" eval 'grep -A1 "inconclusive in" out | tr "\n" " " | grep -q "no space left"'
rm how.train

# -- a speaker --
speaker() { # CODE DIR INPUT ARGS..
	want=$1 dir=$2 input=$3
	shift 3
	printf "$input" | ASSAY_TEST_STAGES=$PWD/stand "$assay" demo "$@" --pause --out "$dir" > out 2> err
	[ $? = "$want" ]
}
ok "a speaker goes on with Enter, and skips" speaker 0 spoken '\ns\n' quick --steps machine,model
ok "the first ran" is machine passed
ok "the second did not" is model skipped "the speaker skipped it"
ok "a speaker ends the tour" speaker 2 quit '\nq\n' quick --steps machine,model,weights
ok "what was done stays" eval 'is machine passed && is weights "not run" "the speaker ended the tour" && [ -s quit/demo.html ]'
ok "without an answer the tour goes on, which is told" eval 'speaker 0 alone "" quick --steps machine,model && says "continues without pauses" err && is model passed'

# -- stops --
wait_for() { for _ in $(seq 600); do [ -e "$1" ] && return 0; sleep 0.05; done; return 1; }
stopped() { # DIR SIGNALS: of a tour whose load does not end
	rm -f begun asked
	ASSAY_TEST_STAGES=$PWD/stand "$assay" demo quick --steps machine,load,cost --price-per-hour 1 --out "$1" > out 2> err < /dev/null &
	pid=$!
	wait_for begun
	for signal in $2; do kill -"$signal" $pid; sleep 0.2; done
	wait $pid
	[ $? = 2 ]
}
echo 'trap "echo > $HERE/asked; exit 2" TERM; echo > $HERE/begun; while :; do sleep 0.05; done' > how.load
ok "a stopped tour is inconclusive" stopped once INT
ok "the command was asked to end" [ -e asked ]
ok "and is inconclusive" is load inconclusive "stopped before its end"
ok "steps before it are kept" is machine passed
ok "steps after it did not run" is cost "not run" "stopped before it began"
ok "the page is written" says 'stopped before its end' once/demo.html
echo 'trap "" TERM; echo > $HERE/begun; while :; do sleep 0.05; done' > how.load
ok "a second Ctrl-C ends a command that does not end itself" stopped twice "INT INT"
ok "and the page is written again" [ -s twice/demo.html ]
rm how.load

# -- a full disk: no file beyond 16 KiB --
ok "a page that cannot be written is told" sh -c 'ulimit -f 32; "$0" demo quick --steps machine --out full > out 2> err < /dev/null; [ $? = 2 ]' "$assay"
ok "with the reason" says "no page: " err
ok "and what was done is readable" eval 'is machine passed && [ -s full/step-1-machine/output.txt ] && [ ! -e full/demo.html ]'
finish

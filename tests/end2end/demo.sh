#!/bin/sh
# assay demo: tours with real steps, steps that fail, a speaker, stops, a pipe instead of a terminal, NO_COLOR, a full disk, and everything
# that is refused. A stand-in of assay does the steps whose time or verdict depends on the machine.
# usage: demo.sh ASSAY FAKES ROOT
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # the CPU, where there is a GPU too
"$assay" make-model --out tiny > out 2> err || lacks "no model can be made: $(cat err)"
"$assay" tokens tiny x > out 2> err || {
	grep -q 'built without tokenizers' err || cat err
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
}

# A small suite: a reading, and a case of a millisecond.
printf 'name: small\ncases:\n  - {probe: limits}\n  - {probe: "null", phases: burst, require: nothing, options: {time: 1ms}}\n' > small.yaml
# The stand-in: a file how.COMMAND is shell code that runs instead; its $dir is the run directory.
cat > stand << 'END'
#!/bin/sh
dir=. before= plan=no
for word; do
	[ "$before" = --out ] && dir=$word
	[ "$word" = --plan ] && plan=yes
	before=$word
done
if [ "$1" = check ] && [ $plan = yes ]; then
	echo '{"seconds_expected": 3}'
	exit 0
fi
echo "$1" >> "$HERE/ran"
[ -e "$HERE/how.$1" ] && . "$HERE/how.$1"
case $1 in
check) exec "$ASSAY" check --suite "$HERE/small.yaml" --out "$dir" ;;
make-model) # every model is the smallest one
	for out; do :; done
	exec "$ASSAY" make-model --out "$out" ;;
load)
	printf '{"headline": "measured: 9 of 9 requests answered", "cases": [{"probe": "load", "phases": [{"phase": "once", "values": %s}]}]}\n' \
		'{"requests": 9, "answered": 9, "ttft_p50_s": 0.05, "completed_rate": 0.25, "output_tokens_per_s": 4.5}' > "$dir/results.json"
	echo '<!doctype html><title>report</title>' > "$dir/report.html" ;;
*) exec "$ASSAY" "$@" ;;
esac
END
chmod +x stand
HERE=$PWD ASSAY=$assay
export HERE ASSAY
tour() { # CODE DIR ARGS..: a tour with the stand-in
	want=$1 dir=$2
	shift 2
	rm -f ran
	ASSAY_TEST_STAGES=$PWD/stand "$assay" demo "$@" --out "$dir" > out 2> err < /dev/null
	code=$?
	[ "$code" = "$want" ] || { echo "exit code $code"; return 1; }
}
is() { # STEP VERDICT [WORDS]: the row of the summary that was printed
	grep -E "^ +[0-9]+ $1 +$2" out > row || { grep -E "^ +[0-9]+ $1 " out; return 1; }
	[ -z "${3:-}" ] || says "$3" row
}
links_exist() { # DIR: every file that the page names
	grep -o 'href="[^"#]*"' "$1/demo.html" | sed 's/href="\(.*\)"/\1/' | grep . > names && while read -r name; do [ -e "$1/$name" ] || { echo "$name"; return 1; }; done < names
}

# -- a whole tour; the check's verdict depends on the machine, so it passes by its suite of readings --
ok "a tour in which all is well passes" tour 0 all quick
for step in machine check roofline model train answer weights load; do ok "step $step passed" is $step passed; done
ok "a price needs a GPU or a price" is cost skipped "no GPU whose price is known"
ok "each command is shown as a user would type it" says "^  \$ assay generate all/step-5-train/run/model 'Who are you?' --tokens 64$" out
ok "before the step, with what it proves" eval 'grep -A1 "taught$" out | grep -q "sentence, letter by letter" || says "letter by letter" out'
ok "the trained model says what it was taught" says "^    A very small model that learned this a moment ago.$" out
ok "the loss is told" says "the loss fell from [0-9.]* to" out
ok "figures come from the run directory" says "output tokens  *4.50 /s" out
ok "a pipe gets no colours and no progress" sh -c '! grep -q "$(printf "\033")" out err && ! grep -q "left in all" out err'
ok "the name of the machine is not shown" sh -c '! grep -q "^ *host " out'
ok "the page is one file" sh -c '! grep -qE "(src|href)=\"(http|//)" all/demo.html'
ok "with every verdict" [ "$(grep -o 'class="verdict v-pass"' all/demo.html | wc -l)" -ge 16 ]
ok "every file that it names exists" links_exist all
ok "with the loss as a curve" says "loss over the steps of the training" all/demo.html
ok "and the roofline" says "<figure class=\"roofline\">.*<svg" all/demo.html
ok "the report of a step works" expect 0 report all/step-2-check
ok "messages of all steps are in the log" says "^[0-9:]* train: saved: " all/log.txt
ok "with the progress of the commands" eval 'says "^[0-9:]* train: .*step [0-9]*/80 loss" all/log.txt || says "^[0-9:]* check: \[" all/log.txt || says "^[0-9:]* train: training 253024" all/log.txt'
ok "the model of a real shape is gone" [ ! -e all/weights ]

# -- choice of steps --
ok "too few steps of training teach nothing" tour 2 few quick --steps answer --train-steps 1
ok "which is told" is answer inconclusive "not the taught sentence"
ok "a list brings what the steps need and nothing else" eval '[ "$(cat ran | tr "\n" " ")" = "make-model train generate " ]'
ok "a model of a real shape is kept if it shall be" eval 'tour 0 kept quick --steps weights --keep-model && [ -e kept/weights/config.json ]'
ok "a given model is served and stays" eval 'tour 0 given serve --steps load --model tiny && [ -e tiny/config.json ]'
ok "a price of the machine prices the tokens" eval 'tour 0 priced training --steps cost --price-per-hour 2 --train-steps 1 && says "machine-hours, stated \$2" out'
ok "a step of two trainings has its own folder" [ -e priced/step-8-speed/run/results.json ]

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
ok "without an answer the tour goes on, which is told" eval 'speaker 0 alone "" quick --steps machine,model && says "goes on without pauses" err && is model passed'

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

# -- a terminal --
if command -v script > /dev/null 2>&1 && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
	on_terminal() { ASSAY_TEST_STAGES=$PWD/stand script -qec "$1" /dev/null > out 2> err < /dev/null; }
	escape=$(printf '\033')
	echo 'printf "\r\033[Khalf way" >&2; sleep 1.5; printf "\r\033[K" >&2; echo made; exit 0' > how.make-model
	ok "a terminal gets colours" eval 'on_terminal "$assay demo quick --steps model --out drawn" && says "$escape\[1m4/9" out'
	ok "and progress with the command's own line" says "4/9 model 0:0[0-9], about 0:0[0-9] left in all | half way" out
	ok "NO_COLOR leaves colours out" eval 'NO_COLOR=1 on_terminal "$assay demo quick --steps model --out plain" && ! says "$escape\[1m" out'
	ok "and keeps the progress" says "left in all | half way" out
	rm how.make-model
	ok "--quiet draws nothing" eval 'on_terminal "$assay demo quick --quiet --steps machine --out quiet" && ! says "left in all" out'
else
	ok "a terminal # SKIP script is not installed, or no terminal can be made" true
fi

# -- a plan --
ok "a plan is printed" expect 0 demo serve --plan --model tiny --duration 3 --out planned
ok "with the commands" says "assay load --model tiny --serve-options '--device cpu' --rate 1 --duration 3s" out
ok "and reasons" says "^ *2  weights  *skipped: not needed" out
ok "and the time of all steps" says "about [0-9:.]* \(s\|min\). Results: planned" out
ok "and does nothing" [ ! -e planned ]
ok "every tour has a plan" eval 'for t in quick full benchmark training serve; do expect 0 demo $t --plan || return 1; done'

# -- four GPUs that are not there --
on_gpus() {
	LD_LIBRARY_PATH="$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FAKE_NVML_FILE="$root/tests/fake/h100x4.json" FAKE_CUDA=devices=4 \
		ASSAY_TEST_STAGES=$PWD/stand env -u CUDA_VISIBLE_DEVICES "$assay" "$@" > out 2> err
}
ok "with GPUs, all steps of full run" eval 'on_gpus demo full --plan && ! says "skipped:" out'
ok "the banner names them" says "; 4 GPUs: NVIDIA H100" out
ok "the load is that of a GPU" says "assay load .*--device gpu. --rate 20 --duration 30s" out
ok "the model of a real shape is larger" says "make-model --shape qwen2-0.5b" out
ok "the time of suites comes from their plans" says "^ 3  links  *about 3 s: Speed of the links" out
ok "attention is measured too" eval 'on_gpus demo benchmark --plan && says "assay check attention --out" out'

# -- what is refused --
ok "an unknown tour has a suggestion" eval 'expect 64 demo quik && says "quick" err'
ok "an unknown step too" eval 'expect 64 demo quick --steps trian && says "there is no step \"trian\", did you mean \"train\"" err'
ok "a step of another tour" expect 64 demo benchmark --steps train
ok "an empty list" expect 64 demo quick --steps ,
ok "two tours" eval 'expect 64 demo quick full && says "follows only the word start" err'
ok "--detach without start" expect 64 demo quick --detach
ok "a model that does not exist" eval 'expect 64 demo serve --model nowhere && says "--model nowhere: there is no such" err'
ok "a folder in use" eval 'expect 64 demo quick --out tiny && says "not an empty folder" err'
ok "no steps of training" expect 64 demo quick --train-steps 0
ok "an unknown option" expect 64 demo quick --fast
ok "nothing was left behind" [ ! -e assay-runs ]
finish

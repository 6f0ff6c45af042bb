#!/bin/sh
# assay demo: tours with real steps, a pipe instead of a terminal, NO_COLOR, GPUs that are not there, and everything that is refused.
# usage: demo.sh ASSAY FAKES ROOT
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
. "$here/demo_stand.sh"
links_exist() { # DIR: every file that the page names
	grep -o 'href="[^"#]*"' "$1/demo.html" | sed 's/href="\(.*\)"/\1/' | grep . > names && while read -r name; do [ -e "$1/$name" ] || { echo "$name"; return 1; }; done < names
}

# -- a whole tour; the check's verdict depends on the machine, so it passes by its suite of readings --
ok "a tour in which all is well passes" tour 0 all quick
for step in machine check roofline model train answer weights load; do ok "step $step passed" is $step passed; done
ok "a price needs a GPU or a price" is cost skipped "no GPU whose price is known"
ok "each command is shown as a user would type it" says "^  \$ assay generate all/step-5-train/run/model 'Who are you?' --tokens 64$" out
ok "the machine is shown with the disk of the results" says "^  \$ assay info --out [^ ]*all$" out
place() { grep -n -- "$1" out | head -n 1 | cut -d: -f1; }
ok "after what the step proves" [ "$(place 'letter by letter')" -lt "$(place 'assay generate all')" ]
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
ok "the model of a real shape is gone" [ ! -e all/weights ]

# -- choice of steps --
ok "too few steps of training teach nothing" tour 2 few quick --steps answer --train-steps 1
ok "which is told" is answer inconclusive "not the taught sentence"
ok "a list brings what the steps need and nothing else" eval '[ "$(cat ran | tr "\n" " ")" = "make-model train generate " ]'
ok "a model of a real shape is kept if it shall be" eval 'tour 0 kept quick --steps weights --keep-model && [ -e kept/weights/config.json ]'
ok "a given model is served and stays" eval 'tour 0 given serve --steps load --model tiny && [ -e tiny/config.json ]'
# as `assay load` ends then (tests/end2end/load.sh)
echo 'echo "{\"headline\": \"unknown: none of the 9 requests of the measured window was answered\", \"cases\": []}" > "$dir/results.json"; exit 2' > how.load
ok "a load test without an answer is no pass" eval 'tour 2 unanswered serve --steps load --model tiny && is load inconclusive "none of the 9 requests"'
rm how.load
ok "a price of the machine prices the tokens" eval 'tour 0 priced training --steps cost --price-per-hour 2 --train-steps 1 && says "machine-hours, stated \$2" out'
ok "a step of two trainings has its own folder" [ -e priced/step-8-speed/run/results.json ]

ok "stages of comprehensive are a step" tour 0 proved full --steps prove
ok "with the verdict of each stage" says "Accuracy  *passed" out
ok "and a link to their page" says 'href="step-15-prove/run/index.html"' proved/demo.html
ok "a report is made again" eval 'tour 0 again benchmark --steps report && says "^    2 cases: " out'

# -- a terminal --
if command -v script > /dev/null 2>&1 && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
	on_terminal() { ASSAY_TEST_STAGES=$PWD/stand script -qec "$1" /dev/null > out 2> err < /dev/null; }
	escape=$(printf '\033')
	echo 'printf "\r\033[Khalf way" >&2; sleep 1.5; printf "\r\033[K" >&2; echo made; exit 0' > how.make-model
	ok "a terminal gets colours" eval 'on_terminal "$assay demo quick --steps model --out drawn" && says "$escape\[1m4/9" out'
	ok "and progress with the command's own line" says "4/9 model 0:0[0-9], about 0:0[0-9] left in all | half way" out
	ok "the log has it too" says "^0:0[0-9] model: half way" drawn/log.txt
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
on_gpus() (
	all_libraries
	LD_LIBRARY_PATH="$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FAKE_NVML_FILE="$root/tests/fake/h100x4.json" FAKE_CUDA=devices=4 \
		ASSAY_TEST_STAGES=$PWD/stand env -u CUDA_VISIBLE_DEVICES "$assay" "$@" > out 2> err
)
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

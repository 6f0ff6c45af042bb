#!/bin/bash
# A whole ladder on a GPU that is not there: every rung that a GPU has, by the fake driver and libraries. usage: ladder_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json
if ! "$assay" list kernels | grep -q train_rows_f32; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi
expect 0 make-model --shape tiny --out model
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
in_json() { tr -d '\n' < "$1/summary.json" | sed 's/{ *"rung"/\n&/g' | grep "\"rung\": \"$2\"" | sed 's/  */ /g' | grep -q -- "$3"; }
ok "a ladder on a GPU passes" expect 0 ladder --shape tiny --rounds 1 --steps 3 --length 64 --out all
for r in batch tf32 bf16 fused attention packing loading graphs recompute fp8; do
	ok "rung $r has a factor" eval 'in_json all $r "\"factor\":" && in_json all $r "\"verdict\": \"passed\""'
done
ok "one GPU does not train on several" in_json all parallel '"verdict": "skipped"'
ok "power and energy are there" in_json all bf16 '"joules_per_token":'
ok "float32 jobs attend plainly" eval 'grep -q "\"attention\": *\"plain\"" all/jobs/round-1-tf32/run/results.json'
ok "BF16 has another loss than float32, within its tolerance" eval 'in_json all bf16 "\"loss_first_difference\": [1-9]" && ! in_json all batch "\"loss_first_difference\": [1-9][0-9.]*e-0[1-5]"'
result() { sed -n "s/.*\"$2\": *\"\{0,1\}\([a-z0-9.]*\).*/\1/p" "all/jobs/round-1-$1/run/results.json" | tail -n 1; }
for r in baseline/fp32 tf32/tf32 bf16/bf16 graphs/bf16 fp8/fp8; do
	ok "rung ${r%/*} computed in ${r#*/}" [ "$(result "${r%/*}" precision)" = "${r#*/}" ]
done
ok "with other losses in FP8 than in BF16" [ "$(result fp8 eval_loss)" != "$(result graphs eval_loss)" ]
ok "adapters are fused from that rung on" [ "$(result bf16 adapters) $(result fused adapters)" = "separate fused" ]
ok "graphs are launched on that rung and not below" eval '[ "$(result loading graph_launches)" = 0.0 ] && [ "$(result graphs graph_launches)" != 0.0 ]'
ok "TF32 and BF16 are told together" says "tf32 to bf16 together" all/SUMMARY.md
FAKE_CUDA=cuLaunchKernel=719@60 "$assay" ladder --shape tiny --rounds 1 --steps 3 --length 64 --out lost > out 2> err
ok "a device that fails in each job leaves no factor" eval '[ $? = 2 ] || [ ! -e lost/summary.json ] || says "\"exit_code\": 2" lost/summary.json'
ok "with the driver's words" says "cuLaunchKernel: .*719" err
# Four GPUs: the highest rung trains on all.
. "$here/gpu_ranks.sh"
FAKE_NVML_FILE=$root/tests/fake/h100x4.json
ok "four GPUs have one rung more" expect 0 ladder --shape tiny --rounds 1 --steps 3 --length 64 --out four
ok "with a factor and the baseline's loss" eval 'in_json four parallel "\"factor\":" && in_json four parallel "\"verdict\": \"passed\"" && in_json four parallel "\"below\": \"fp8\""'
ok "its job had four ranks" eval 'grep -q "\"ranks\":4" four/jobs/round-1-parallel/run/journal.jsonl && ! grep -q "\"ranks\":4" four/jobs/round-1-fp8/run/journal.jsonl'
ok "the energy of all of them is not known" eval 'in_json four fp8 "\"joules_per_token\":" && ! in_json four parallel "\"joules_per_token\":"'
finish

#!/bin/sh
# assay ladder: factors, losses, failures, interrupted and resumed ladders, CONFIG and what it lacks, the page, and everything that
# is refused. The jobs are a stand-in's, but for one whole ladder of a tiny model. usage: ladder.sh ASSAY FAKES ROOT
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
. "$here/ladder_stand.sh"
if ! "$assay" ladder --plan --device cpu > out 2> err; then
	cat err
	exit 1
fi

on_gpu() (
	all_libraries
	LD_LIBRARY_PATH="$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FAKE_NVML_FILE="${nvml:-$root/tests/fake/h100.json}" env -u CUDA_VISIBLE_DEVICES \
		"$assay" "$@" > out 2> err
)

# -- factors --
ok "a ladder whose jobs agree passes" ladder 0 all
ok "rounds go down after they went up" [ "$(tr '\n' ' ' < ran)" = "round-1-baseline round-1-batch round-1-packing round-1-loading round-1-recompute round-2-recompute round-2-loading round-2-packing round-2-batch round-2-baseline round-3-baseline round-3-batch round-3-packing round-3-loading round-3-recompute " ]
ok "a factor is that over the rung below" in_json all batch '"factor": 1.3,'
ok "over the next one that exists" eval 'in_json all packing "\"below\": \"batch\"" && in_json all packing "\"factor\": 7.69"'
ok "a trade that does not pay is not part of the whole" eval 'in_json all recompute "\"factor\": 0.909" && says "\"total_factor\": 11" all/summary.json && says "up to loading together: 11 (11 to 11)" all/SUMMARY.md && says "recompute, passed: not worth it on this device: 0.909 of the rate of loading; later rungs are measured without it" all/SUMMARY.md'
ok "rungs for GPUs are there with their reason" eval 'in_json all tf32 "\"verdict\": \"skipped\"" && in_json all graphs "CUDA graphs exist on GPUs only" && in_json all fp8 "a CPU multiplies numbers rounded to FP8 in float32"'
ok "and without a factor" eval '! in_json all tf32 "\"factor\":"'
ok "what a CPU does not report is absent with its reason" eval 'says "reads utilization and power of GPUs only" all/SUMMARY.md && ! says "sm_active_share" all/summary.json && ! says "joules" all/summary.json'
ok "the settings of a job are those of all rungs below" eval 'c=all/jobs/round-1-recompute/config.yaml; says "packing: true" $c && says "dataloader_num_workers: 1" $c && says "recompute: full" $c && says "per_device_train_batch_size: 4" $c && says "adapters: separate" $c && says "precision: fp32" $c'
ok "and not those above" eval 'c=all/jobs/round-1-batch/config.yaml; says "packing: false" $c && says "recompute: none" $c && says "gradient_accumulation_steps: 4" $c'
ok "each configuration is one that assay train takes" eval 'for c in all/jobs/*/config.yaml; do expect 64 train $c --plan; says "config.json" err || return 1; done' # the stand-in's model has no files
ok "checkpoints and adapters of the jobs are gone" eval '! ls -d all/jobs/*/run/checkpoint-* all/jobs/*/run/adapter'
ok "unless they are kept" eval 'ladder 0 kept --rounds 1 --keep-weights && [ -d kept/jobs/round-1-batch/run/adapter ]'
ok "one round has no interval" eval 'in_json kept batch "\"factor\": 1.3," && ! says "factor_lowest" kept/summary.json && says "1.3 (one round, no interval)" kept/SUMMARY.md'
echo 'rate=120' > how.round-2-batch
ok "rounds that differ give an interval" eval 'ladder 0 differ --rounds 2 && in_json differ batch "\"factor\": 1.25, \"factor_lowest\": 1.2, \"factor_highest\": 1.3"'
rm how.round-2-batch
ok "no round begins that would end too late" eval 'ladder 0 short --within 0 && [ "$(wc -l < ran)" = 5 ]'
ok "rounds and steps are the user's" eval 'ladder 0 few --rounds 1 --steps 7 && says "max_steps: 7" few/jobs/round-1-batch/config.yaml && [ "$(wc -l < ran)" = 5 ]'
ok "JSON is printed" eval 'ladder 0 json --rounds 1 --json && says "\"schema\": \"assay.ladder.summary\"" out'

# -- the page --
ok "the page is one file" sh -c '! grep -qE "(src|href)=\"(http|//)" all/report.html'
ok "with a waterfall of the measured rungs" [ "$(grep -c '<div class="step' all/report.html)" = 5 ]
ok "a loss of speed looks different" [ "$(grep -c '<div class="step odd"' all/report.html)" = 1 ]
ok "each rung has its place" eval 'for r in baseline batch tf32 bf16 fused attention packing loading graphs recompute fp8 parallel; do says "id=\"rung-$r\"" all/report.html || return 1; done'
ok "and links to its jobs, which exist" eval 'grep -o "href=\"jobs[^\"]*\"" all/report.html | sed "s/href=\"\(.*\)\"/\1/" > names && [ "$(wc -l < names)" = 15 ] && while read -r name; do [ -e "all/$name" ] || return 1; done < names'

# -- the picture --
marks() { grep -c "<path [^>]*class=\"f-$2\"" "$1/waterfall.svg"; } # DIR ROLE: bars of a colour
ok "the waterfall is a picture too" eval '[ "$(marks all s0)" = 1 ] && [ "$(marks all good)" = 3 ] && [ "$(marks all loss)" = 1 ]'
ok "with rates and factors" eval 'says ">130 tokens/s, times 1.3<" all/waterfall.svg && says ">100 tokens/s<" all/waterfall.svg'
ok "the whole, and the rungs without a rate" eval 'says "All rungs up to loading: 11 (11 to 11) times the baseline" all/waterfall.svg && says "Not measured here: TF32, BF16, fused kernels, attention, CUDA graphs, FP8, several GPUs<" all/waterfall.svg'
ok "it is XML" sh -c '! command -v xmllint > /dev/null || xmllint --noout all/waterfall.svg'
ok "the summary shows it" says "(waterfall.svg)" all/SUMMARY.md

# -- losses --
echo 'last=5.2' > how.packing
ok "a rung that changes the loss fails" ladder 1 lossy --rounds 1
ok "with how much" in_json lossy packing '"verdict": "failed".*after the last step differs by 0.061.*at most 0.021'
echo 'first=5.01' > how.packing
ok "a difference before the first step is the arithmetic's" eval 'ladder 1 wrong --rounds 1 && in_json wrong packing "before the first step differs by 0.002"'
echo 'last=4.95' > how.packing
ok "packs hold other rows, which is tolerated" ladder 0 other --rounds 1
echo 'last=4.95' > how.batch
ok "but not of the rung batch" eval 'ladder 1 same --rounds 1 && in_json same batch "at most 0.001"'
rm how.batch how.packing
echo 'first=null last=null' > how.loading
ok "a loss that is not told is inconclusive" eval 'ladder 2 mute --rounds 1 && in_json mute loading "loss or the baseline.s is not known"'
rm how.loading
mkdir real
echo 'last=5.2' > how.round-1-packing
ok "losses come from the loss model if there is one" ladder 0 real-loss --rounds 1 --loss-model real
ok "in jobs of their own" eval '[ "$(grep -c ^loss- ran)" = 5 ] && says "name_or_path: \"$PWD/real\"" real-loss/jobs/loss-packing/config.yaml && says "random_weights: false" real-loss/jobs/loss-packing/config.yaml'
ok "which is said" says "weights of the loss model" real-loss/SUMMARY.md
rm how.round-1-packing
ok "random weights are said too" says "losses are those of random weights, because no model" all/SUMMARY.md
ok "a model of one's own is trained from" eval 'ladder 0 own --rounds 1 --model real && [ ! -e own/model ] && says "random_weights: false" own/base.yaml && says "the model.s own weights" own/SUMMARY.md'

# -- settings without an effect, on a GPU that is not there --
echo 'memory=3e6' > how.recompute
climbed() { # CODE DIR: a ladder with every rung that a GPU has
	rm -f ran
	(ASSAY_TEST_STAGES=$PWD/stand on_gpu ladder --device gpu --rounds 1 --out "$2")
	[ $? = "$1" ]
}
ok "every rung has an effect" climbed 0 effect
ok "of its own setting" eval 'for r in tf32 bf16 fp8; do says "precision: $r" effect/jobs/round-1-$r/config.yaml && in_json effect $r "\"factor\":" || return 1; done'
ok "FP8 is over graphs, without the trade that does not pay" eval 'in_json effect fp8 "\"below\": \"graphs\".*\"factor\": 1.26" && says "recompute: none" effect/jobs/round-1-fp8/config.yaml && says "graphs: true" effect/jobs/round-1-fp8/config.yaml'
ok "which is said" eval 'says "recompute, passed: not worth it on this device: 0.9 of the rate of graphs, with 2.00 MB less memory; later rungs are measured without it" effect/SUMMARY.md && says "not worth it on this device" effect/report.html'
echo 'rate=1222 memory=3e6' > how.recompute
ok "a trade that pays is part of later rungs" eval 'climbed 0 paying && in_json paying fp8 "\"below\": \"recompute\"" && says "recompute: full" paying/jobs/round-1-fp8/config.yaml && says "recompute, passed: worth it on this device: 1.1 of the rate of graphs.*measured with it" paying/SUMMARY.md'
rm how.recompute
echo 'precision=bf16' > how.fp8
ok "FP8 that is none has failed" eval 'climbed 1 none && in_json none fp8 "\"verdict\": \"failed\".*no effect, because its job recorded precision: bf16 instead of fp8" && ! in_json none fp8 "\"factor\":"'
ok "and is not part of the whole" says "up to graphs together" none/SUMMARY.md
echo 'mute=yes' > how.fp8
ok "so has a job that does not say how it computed" eval 'climbed 1 unsaid && in_json unsaid fp8 "recorded precision: nothing instead of fp8"'
rm how.fp8
echo 'graphs=0' > how.graphs
echo 'adapters=separate' > how.fused
echo 'attention=plain' > how.attention
ok "a choice that is left to assay and has no effect is skipped" eval 'climbed 0 idle && in_json idle graphs "\"verdict\": \"skipped\".*recorded graph_launches: 0; graphs are for small" && in_json idle fused "skipped.*recorded adapters: separate" && in_json idle attention "skipped.*recorded attention: plain"'
ok "without a factor, and no later rung has its settings" eval '! in_json idle graphs "\"factor\":" && in_json idle fp8 "\"below\": \"loading\"" && says "graphs: false" idle/jobs/round-1-fp8/config.yaml'
ok "a ladder that goes on knows it" eval 'goes_on 0 idle && [ ! -e ran ] && in_json idle graphs "\"verdict\": \"skipped\""'
rm how.graphs how.fused how.attention

# -- jobs that fail --
echo 'echo "assay: error: no memory for it" >&2; exit 2' > how.batch
ok "a job that fails is no measurement" ladder 2 failed --rounds 2
ok "with its own words" in_json failed batch '"verdict": "inconclusive".*no memory for it'
ok "the next rung is built without it" eval 'says "per_device_train_batch_size: 1" failed/jobs/round-1-packing/config.yaml && in_json failed packing "\"below\": \"baseline\""'
ok "and it is not tried again" [ "$(grep -c batch ran)" = 1 ]
echo 'kill -9 $$' > how.batch
ok "nor is one that a signal ends" eval 'ladder 2 killed --rounds 1 && in_json killed batch "ended by signal 9"'
echo 'exit 0' > how.batch
ok "nor one that leaves nothing" eval 'ladder 2 empty --rounds 1 && in_json empty batch "reported no rate of steady steps"'
rm how.batch
echo 'exit 2' > how.baseline
ok "without a baseline the next rungs still have its settings" eval 'ladder 2 bottom --rounds 1 && says "packing: false" bottom/jobs/round-1-batch/config.yaml && in_json bottom packing "\"factor\": 7.69"'
ok "but the rung above it has no factor" eval '! in_json bottom batch "\"factor\":" && in_json bottom batch "inconclusive"'
rm how.baseline
echo 'echo "assay: error: the disk is full" >&2; exit 2' > how.make-model
ok "a model that cannot be made ends it" eval 'ladder 2 unmade; says "make-model ended with exit code 2; .*messages.txt" err'
rm how.make-model

echo 'rm -f ladder.jsonl && rm -rf "$(dirname "$config")/../../ladder.jsonl" && mkdir "$(dirname "$config")/../../ladder.jsonl"' > how.baseline
ok "a journal that cannot be written does not end it" eval 'ladder 0 unwritten --rounds 1 && says "cannot write .*ladder.jsonl.*--resume will run this job again" err'
rm how.baseline
echo 'mkdir "$(dirname "$config")/../../report.html"' > how.recompute
ok "a report that cannot be written is an error" eval '! ladder 0 unreported --rounds 1 && says "report.html" err'
echo 'mkdir "$(dirname "$config")/../../waterfall.svg"' > how.recompute
ok "so is a picture that cannot be written" eval '! ladder 0 unpainted --rounds 1 && says "waterfall.svg" err'
rm how.recompute
for rung in baseline batch packing loading recompute; do echo 'exit 2' > how.$rung; done
ok "a ladder without any rate has an empty picture" eval 'ladder 2 rateless --rounds 1 && says "No rung has a factor" rateless/waterfall.svg && ! says "tokens/s" rateless/waterfall.svg'
rm how.*

# -- interrupted and resumed --
echo ': > waits; sleep 60 & wait $!' > how.packing
sed -i "2i trap 'exit 2' TERM" stand
ASSAY_TEST_STAGES=$PWD/stand "$assay" ladder --device cpu --rounds 2 --out broken > out 2> err &
pid=$!
for i in $(seq 600); do [ -e waits ] && break; sleep 0.1; done
kill -INT $pid
wait $pid
ok "Ctrl-C ends a ladder as inconclusive" [ $? = 2 ]
ok "with a report of what is there" eval 'in_json broken batch "\"factor\": 1.3," && in_json broken packing "\"verdict\": \"not run\"" && [ -e broken/report.html ]'
ok "and how to go on" says "continue with assay ladder --resume .*broken" err
rm how.packing
printf '{"round": 0, "rung": "load' >> broken/ladder.jsonl
ok "it goes on" goes_on 0 broken
ok "with what is missing and nothing else" [ "$(tr '\n' ' ' < ran)" = "round-1-packing round-1-loading round-1-recompute round-2-recompute round-2-loading round-2-packing round-2-batch round-2-baseline " ]
ok "to the same factors" eval 'in_json broken packing "\"factor\": 7.69" && in_json broken batch "\"rounds\": 2"'
ok "the line that was cut off is gone" eval '[ "$(wc -l < broken/ladder.jsonl)" = 11 ] && ! says "load$" broken/ladder.jsonl'
ok "a ladder that is complete runs nothing" eval 'goes_on 0 broken && [ ! -e ran ]'

# -- CONFIG --
mkdir tiny
echo '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}' > rows.jsonl
cat > mine.yaml << 'CONFIG'
model: {name_or_path: tiny}
lora: {r: 8}
data: {train: rows.jsonl, max_seq_length: 96, packing: false}
training:
  per_device_train_batch_size: 1
  gradient_accumulation_steps: 16
  dataloader_num_workers: 0
  recompute: none
CONFIG
ok "a configuration is measured" ladder 0 mine mine.yaml
ok "with its model, adapter and rows" eval 'c=mine/jobs/round-1-packing/config.yaml; says "name_or_path: \"$PWD/tiny\"" $c && says "  r: 8" $c && says "max_seq_length: 96" $c && says "train: .\"$PWD/rows.jsonl\"" $c'
ok "whose held-out rows are those of training, which is said" says "names no held-out rows, so these are rows of the training set" mine/SUMMARY.md
sed 's/^training:/training:\n  global_batch_size: 4\n  gpus: 0/' mine.yaml > ranked.yaml
ok "a step has the ladder's rows on one GPU, whatever the configuration says" eval 'ladder 0 ranked ranked.yaml --rounds 1 && says "global_batch_size: 0" ranked/base.yaml && says "gpus: 1" ranked/base.yaml && says "gradient_accumulation_steps: 8" ranked/base.yaml'
ok "its rows are tokenized once" says "cache_dir: .*/mine/rows" mine/base.yaml
sed 's/^lora:.*//; s/^training:/training:\n  full_finetuning: true/' mine.yaml > whole.yaml
ok "without adapters nothing is fused" eval 'on_gpu ladder --plan whole.yaml && says "^ 4  fused *skipped: only the kernels of adapters can be fused, and this configuration trains all weights" out'
sed 's/{r: 8}/{r: 8, dropout: 0.1}/' mine.yaml > dropped.yaml
ok "nor with dropout" eval 'on_gpu ladder --plan dropped.yaml && says "^ 4  fused *skipped: adapters with dropout" out'
ok "it says which lines to change" eval 'says "  per_device_train_batch_size: 2   # now 1; measured factor 1.3" mine/SUMMARY.md && says "  packing: true   # now false; measured factor 7.69" mine/SUMMARY.md && says "dataloader_num_workers: 1   # now 0" mine/SUMMARY.md'
ok "a step keeps its rows" says "  gradient_accumulation_steps: 8 " mine/SUMMARY.md
ok "not the ones that gain nothing" eval '! says "  recompute:" mine/SUMMARY.md'
ok "the page has them too" says "packing: true" mine/report.html
sed -n '/^```yaml$/,/^```$/p' mine/SUMMARY.md | grep -v '^```' > lines.yaml
sed -e 's/, packing: false//' -e '/^training:/,$d' mine.yaml > changed.yaml
sed -n '/^training:/,/^data:/p' lines.yaml | grep -v ^data >> changed.yaml
ok "the lines are a configuration" eval 'ladder 0 changed changed.yaml --rounds 1 && says "Nothing: it has the value of each rung" changed/SUMMARY.md'
ok "a ladder with CONFIG goes on without it" eval 'sed -i 6q mine/ladder.jsonl && goes_on 0 mine && [ "$(wc -l < ran)" = 10 ]'
printf 'model: {name_or_path: tiny}\nlora: {r: 8}\ndata: {train: rows.jsonl}\ntraining: {packing: true}\n' > bad.yaml
ok "a bad configuration is refused by name and place" eval 'ladder 64 bad bad.yaml; says "bad.yaml:4: training: \"packing\" belongs under data" err'
ok "and leaves nothing behind" [ ! -e bad ]

# -- plans --
ok "a plan is printed" eval 'expect 0 ladder --plan --device cpu --out planned && says "^ 1  batch .*per_device_train_batch_size: 2" out && says "^ 2  tf32 .*skipped: TF32 is a mode" out && [ ! -e planned ]'
ok "on a GPU all rungs are there" eval 'on_gpu ladder --plan && says "^ladder on NVIDIA H100 80GB HBM3; qwen2-7b; 3 rounds of 5 steps" out && says "^ 3  bf16 *precision: bf16" out && says "^10  fp8 *precision: fp8" out && ! grep -qE "^ ?[0-9]+  [a-z0-9]+ *$" out'
ok "one GPU does not train on several" eval 'says "^11  parallel *skipped: assay may use one GPU of this machine only" out'
ok "four do" eval 'nvml=$root/tests/fake/h100x4.json && on_gpu ladder --plan; unset nvml; says "^11  parallel *gpus: 0, gradient_accumulation_steps: 1" out'
sed 's/^training:/training:\n  master_weights: split/; s/^lora:.*//; s/^  recompute: none/  full_finetuning: true/' mine.yaml > states.yaml
ok "what the configuration refuses is told in its words" eval 'on_gpu ladder --plan states.yaml; says "skipped: .*master_weights: its weights are BF16" out'

sed 's/"compute_capability": \[0, \[9, 0\]\]/"compute_capability": [0, [8, 0]]/' "$root/tests/fake/h100.json" > a100.json
ok "a GPU without FP8 is named as such" eval 'nvml=$PWD/a100.json && on_gpu ladder --plan; unset nvml; says "^10  fp8 *skipped: it needs a GPU of compute capability 9.0, and this one has 8.0" out'

# -- what is refused --
ok "a configuration that does not exist" eval 'expect 64 ladder nowhere.yaml && says "nowhere.yaml: there is no such file" err'
ok "a model that does not exist" eval 'expect 64 ladder --model nowhere && says "--model nowhere: there is no such" err'
ok "a loss model that does not exist" expect 64 ladder --loss-model nowhere
ok "two models" eval 'expect 64 ladder mine.yaml --model tiny && says "only one of CONFIG" err'
ok "an unknown shape has a suggestion" eval 'expect 64 ladder --shape smollm2 && says "smollm2-135m" err'
ok "too few steps" eval 'expect 64 ladder --steps 2 && says "needs 3 steps" err'
ok "too many rounds" expect 64 ladder --rounds 17
ok "rows that are too short" eval 'expect 64 ladder --length 8 && says "need 64 tokens" err'
ok "a length beside CONFIG" expect 64 ladder mine.yaml --length 128
ok "a folder in use" eval 'expect 64 ladder --out tiny/.. && says "not an empty folder" err'
ok "a plan as JSON" expect 64 ladder --plan --json
ok "--resume with another model" eval 'expect 64 ladder --resume all --model tiny && says "leave out CONFIG" err'
ok "--resume of nothing" eval 'expect 64 ladder --resume nowhere && says "has no ladder to continue" err'
mkdir strange && echo '{"schema":"other"}' > strange/ladder.jsonl
ok "--resume of something else" eval 'expect 64 ladder --resume strange && says "not the plan of a ladder" err'
ok "nothing was left behind" [ ! -e assay-runs ]

# -- real jobs --
if expect 0 make-model --shape tiny --out model && expect 2 tokens model x && says 'built without tokenizers' err; then
	ok "a whole ladder # SKIP this build has no tokenizers" true
else
	ok "a whole ladder of a tiny model passes" expect 0 ladder --shape tiny --device cpu --rounds 1 --steps 3 --out whole
	ok "each measured rung has a factor" eval 'for r in batch packing loading recompute; do in_json whole $r "\"factor\":" || return 1; done'
	ok "its losses are the baseline's" eval 'in_json whole recompute "\"loss_first_difference\": [0-9.]*e\{0,1\}" && in_json whole packing "\"verdict\": \"passed\""'
	ok "a step has the same rows before packing" eval 'for r in baseline batch; do sed -n "s/.*\"rows\":{\"kind\":\"gauge\",\"after\":.0.,\"v\":.\([0-9]*\).*/\1/p" whole/jobs/round-1-$r/run/journal.jsonl | sort -u > rows.$r; [ "$(cat rows.$r)" = 8 ] || return 1; done'
	ok "a job is a run like any other" expect 0 report whole/jobs/round-1-batch/run
fi
finish

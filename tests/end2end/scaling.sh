#!/bin/sh
# The real binary trains on four GPUs that are not there: the account of a step, a GPU that is ten percent slower, products that are
# dropped, a collective that fails. The fakes count time and do not wait for it, so the host's clock is far off the account's sum
# here, and that has to be said. usage: scaling.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
export FAKE_CUDA=devices=4
between() { awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(x != "" && x >= low && x <= high) }'; }
cat > train.yaml << LIST
name: train
cases:
  - {probe: scaling, target: [node, "node:0,2"], phases: burst, seconds: 2ms, require: measured, options: {m: 16, width: 16, layers: 4, buckets: 2}}
LIST
cat > apart.yaml << LIST
name: apart
cases:
  - {probe: scaling, target: node, phases: burst, seconds: 2ms, require: measured, options: {m: 16, width: 16, layers: 4, buckets: 4, type: fp16, overlap: false}}
LIST
cat > alone.yaml << LIST
name: alone
cases:
  - {probe: scaling, target: "node:1", phases: burst, require: measured}
LIST
run() { # SUITE OUT
	"$assay" check --suite "$1.yaml" --out "$2" > "$2.out" 2> "$2.err"
}

run train clean
ok "four GPUs train" [ $? = 0 ]
ok "both cases ended well" [ "$(grep -c '"type":"end".*"status":"ok"' clean/journal.jsonl)" = 2 ]
ok "gradients were checked on every rank" [ "$(value clean 0 wrong_checked)" = 128 ]
ok "nobody is named" [ "$(value clean 0 slowest_rank)$(value clean 1 slowest_rank)" = "" ]
ok "it is efficient" between "$(value clean 0 efficiency)" 0.97 1.001
ok "shares are the whole" between "$(awk "BEGIN { print $(value clean 0 compute_share) + $(value clean 0 exposed_share) + $(value clean 0 waiting_share) }")" 0.9999 1.0001
ok "rows of four ranks a step" between "$(awk "BEGIN { print $(value clean 0 tokens_rate) * $(value clean 0 step_ns) / 64e9 }")" 0.9999 1.0001
ok "what the host's clock says is far off, and told" says 'clock by .*, unexplained' clean/REPORT.md
ok "as a remark of the case" says '"warn","unexplained"' clean/results.csv
ok "the table grows with the ranks" \
	sh -c 'grep -A 5 "^### Scaling" clean/REPORT.md | grep "node" | sed "s/^| \([0-9]*\) .*/\1/" | tr "\n" " " | grep -qx "2 4 "'
ok "on the page too" says '<h3>Scaling: training step, 4 layers of 16' clean/report.html
ok "and on the terminal" says '^ *2  node:0,2 .*%' clean.out
# One bucket: the fake driver's streams take turns, so a wait beside products would lengthen these here.
sed 's/buckets: 2/buckets: 1/' train.yaml > whole.yaml
FAKE_CUBLASLT=late=210 run whole late
ok "a slow GPU is named" [ "$(value late 0 slowest_rank)" = "2 (gpu2)" ]
ok "in a part of the node by its rank there" [ "$(value late 1 slowest_rank)" = "1 (gpu2)" ]
ok "as last in each step" between "$(value late 0 slowest_share)" 0.8 1
ok "the others wait a tenth of their computation" between "$(value late 0 waiting_others_share)" 0.08 0.12
ok "that is where the most is lost" [ "$(value late 0 largest_loss)" = waiting ]
ok "the verdict names it" says 'the other ranks wait for a slower rank.*: 2 (gpu2)' late/results.csv
ASSAY_TEST=1 ASSAY_TEST_PLANT=late:2 run whole planted
ok "so is one whose steps were planted to be a tenth longer" [ "$(value planted 0 slowest_rank),$(value planted 1 slowest_rank)" = "2 (gpu2),1 (gpu2)" ]
ok "the others wait for that tenth" between "$(value planted 0 waiting_others_share)" 0.08 0.1
ok "it is what the most is lost to" [ "$(value planted 0 largest_loss)" = waiting ]
ok "and the journal says that it was planted" says '"planted":"late:2"' planted/journal.jsonl
ASSAY_TEST_PLANT=late:2 run whole unasked
ok "in tests alone" [ $? = 64 ]
FAKE_CUBLASLT=late=205 run apart apart
ok "without overlap too" [ "$(value apart 0 slowest_rank)" = "2 (gpu2)" ]
ok "all communication is exposed then" between "$(awk "BEGIN { print $(value apart 0 exposed_share) * $(value apart 0 step_ns) / $(value apart 0 collective_ns) }")" 0.8 1.2
FAKE_CUBLASLT=drop=1 run train drop
ok "products that do nothing fail the run" [ $? = 1 ]
ok "with the rank and the gradient's place" says '32 of 32 sampled gradients are wrong, the first at layer 0 row [0-9]* column [0-9]*:' drop/journal.jsonl
ok "before anything was timed" sh -c '! grep -q "\"phase\":\"burst\"" drop/journal.jsonl'
FAKE_NCCL=ncclAllReduce=3@9 run train refused
ok "a collective that fails is its case's end" sh -c 'grep -q "\"case\":0,\"ending\":\"done\",\"status\":\"vendor\".*ncclAllReduce" refused/journal.jsonl || { grep "\"type\":\"end\"" refused/journal.jsonl refused.err; exit 1; }'
FAKE_CUDA=devices=4,memory=1 run train small
ok "no memory is told" says 'no_memory' small/journal.jsonl
run alone alone
ok "one GPU has nothing to scale with" says 'one GPU: a collective needs two' alone.out
ok "layers that make no equal buckets are refused" expect 64 probe scaling layers=5 buckets=2 --target node --plan
finish

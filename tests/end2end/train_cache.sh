#!/bin/sh
# What training chose by time on a GPU, kept for later runs of the same user: the real binary on the fake driver, cuBLASLt, cuDNN and NVML.
# usage: train_cache.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json
XDG_CACHE_HOME=$PWD/cache
kept=$XDG_CACHE_HOME/assay/choices

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
if ! "$assay" list kernels | grep -q train_rows; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi
for i in $(seq 12); do
	echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
# config NAME LINES..: lines are added to its training
config() {
	name=$1
	shift
	cat > "$name" << CONFIG
model: {name_or_path: model, chat_template: chatml}
lora: {r: 4, alpha: 8}
data: {train: rows.jsonl, max_seq_length: 48}
training:
  learning_rate: 1e-2
  max_steps: ${steps:-4}
  device: gpu
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
config run.yaml
sed 's/lora: {r: 4/lora: {r: 8/' run.yaml > wider.yaml
# told RUN: products that it timed, and that it took from the cache
timed() { grep '"type":"products"' "$1" | grep -o '"seconds":[0-9.e-]*[1-9][0-9.e-]*,"first_seconds":[0-9.e-]*,"recalled":false' | wc -l; }
cached() { grep '"type":"products"' "$1" | grep -o '"cached":true' | wc -l; }
run() { # NAME CONFIG ARGS..
	into=$1 by=$2
	shift 2
	expect 0 train "$by" --out "$into" --json "$@"
}
files() { find "$XDG_CACHE_HOME" -type f 2> /dev/null | wc -l; }

ok "the first run trains" run first run.yaml
timed out > first.timed
ok "and times" [ "$(cat first.timed)" -gt 5 ]
ok "none of which is another's" [ "$(cached out)" = 0 ]
ok "what it chose is kept, in one file" [ "$(files)" = 1 ]
ok "for its user alone" [ "$(stat -c %a "$XDG_CACHE_HOME/assay" "$kept" "$kept"/*.kept | tr '\n' ' ')" = "700 700 600 " ]
ok "and nothing is told of the bytes" eval '! grep -q "\"type\":\"chosen\"" out'
ok "how long tuning took is a result" eval '[ -n "$(value first 0 tuning_s)" ] && [ "$(value first 0 tuning_s)" != 0.0 ]'

ok "the second run trains" run second run.yaml
ok "and times nothing" [ "$(timed out)" = 0 ]
ok "but takes each that the first one timed" [ "$(cached out)" = "$(cat first.timed)" ]
ok "it says where they are from" says "tuning choices come from the cache of an earlier run" err
id=$(basename "$kept"/*.kept .kept)
ok "the journal names each, with its key" [ "$(grep -o '{"what":"[NT][NT] [^"]*","choice":"algo[^"]*","from":"cache","key":"'"$id"'"}' second/journal.jsonl | wc -l)" = "$(cat first.timed)" ]
ok "and their number" [ "$(value second 0 choices_cached | cut -d. -f1)" -ge "$(cat first.timed)" ]
ok "no time went into tuning" [ "$(value second 0 tuning_s)" = 0.0 ]
ok "so that all steps but the first are steady" [ "$(value second 0 steady_steps)" = 3.0 ]
ok "the report reads" expect 0 report second

ok "--no-cache times again" run anew run.yaml --no-cache
ok "as many" [ "$(timed out)" = "$(cat first.timed)" ]
before=$(cat "$kept"/*.kept | cksum)
ok "and keeps nothing" [ "$(cat "$kept"/*.kept | cksum)" = "$before" ]
rm -r "$XDG_CACHE_HOME"
ok "not where nothing was kept either" run empty run.yaml --no-cache
ok "no folder is made" [ ! -e "$XDG_CACHE_HOME" ]
config exact.yaml "deterministic: true"
ok "a deterministic run" run exact exact.yaml
ok "chooses nothing, and has nothing to keep" [ ! -e "$XDG_CACHE_HOME" ]

# What it is kept for: card, driver, libraries, power limit, MIG, the run's shape. The build is a unit test's.
run again run.yaml
other() { # WHAT COMMAND..: with that, nothing of the cache is taken
	what=$1
	shift
	ok "with $what it trains" "$@"
	ok "and takes nothing of another's" [ "$(cached out) $(timed out)" = "0 $(cat first.timed)" ]
}
sed 's/580.159.04/580.200.01/' "$FAKE_NVML_FILE" > driver.json
sed 's/"power_limit": \[0, 700000\]/"power_limit": [0, 500000]/; s/"power_limit_current": \[0, 700000\]/"power_limit_current": [0, 500000]/' "$FAKE_NVML_FILE" > power.json
sed 's/"mig_mode": \[0, \[0, 0\]\]/"mig_mode": [0, [1, 1]]/' "$FAKE_NVML_FILE" > mig.json
for what in driver power mig; do
	FAKE_NVML_FILE=$PWD/$what.json other "another ${what}" run "$what" run.yaml
done
FAKE_CUBLASLT=version=130102 other "another cuBLASLt" run cublas run.yaml
FAKE_CUDNN=version=91901 other "another cuDNN" run cudnn run.yaml
ok "another shape trains" run wider wider.yaml
ok "and takes nothing of another's" [ "$(cached out)" = 0 ]
ok "each has a file of its own" [ "$(files)" = 7 ]
ok "the first one's is taken still" eval 'run still run.yaml && [ "$(timed out)" = 0 ]'

# Others on the card.
rm -r "$XDG_CACHE_HOME"
sed 's/"compute_processes": \[0, \[\]\]/"compute_processes": [0, [{"pid": 1, "memory": 1073741824}]]/' "$FAKE_NVML_FILE" > shared.json
FAKE_NVML_FILE=$PWD/shared.json run shared run.yaml
ok "beside another process nothing is kept" [ "$(files)" = 0 ]
ok "which is told" says 'tuning choices are not saved for other runs: 0000:8d:00.0: 1 other process uses it' err
sed 's/"compute_processes": \[0, \[\]\]/"compute_processes": [3, []]/; s/"memory_v2": \[0, [^]]*\]\]*/"memory_v2": [3]/; s/"memory": \[0, [^]]*\]\]*/"memory": [3]/' "$FAKE_NVML_FILE" > blind.json
FAKE_NVML_FILE=$PWD/blind.json run blind run.yaml
ok "where others cannot be seen the run works" [ "$(timed out)" = "$(cat first.timed)" ]
ok "and nothing is kept" [ "$(files)" = 0 ]

# A file that cannot be believed: the run times its candidates itself and says so once.
run base run.yaml
file=$(echo "$kept"/*.kept)
cp "$file" good
doubted() { # WHAT WORDS: the run tunes, with one line
	ok "$1: the run trains" run "doubted$n" run.yaml
	ok "$1: and times" [ "$(cached out) $(timed out)" = "0 $(cat first.timed)" ]
	ok "$1: in one line" [ "$(grep -c "$2; kernel candidates are timed again" err) $(grep -c '\.kept\|/choices\|chosen by time' err)" = "1 1" ]
}
head -c 300 good > "$file"
doubted "cut" 'it is truncated or damaged'
ok "after which it is whole again" eval 'run mended run.yaml && [ "$(timed out)" = 0 ]'
sed 's/assay cache 1/assay cache 2/' good > "$file"
doubted "another version" 'it has another version of the cache format'
# body KEY BODY: a file with the right sum
body() { { printf 'assay cache 1\n%s\n' "$(printf '%s\n%s\n' "$1" "$2" | sha256sum | cut -d' ' -f1)" && printf '%s\n%s\n' "$1" "$2"; } > "$file"; }
key=$(sed -n 3p good)
body "$key" "$(sed -n 4p good | sed 's/"seconds":[0-9.e-]*/"seconds":-1/')"
doubted "numbers out of range" 'a tuning choice in it has an unknown name or an impossible number'
cp good "$file"
chmod 666 "$file"
doubted "a file that others may write to" 'others may write to it (mode 0666)'
rm "$file"
ln -s "$PWD/good" "$file"
doubted "a link" 'it is a symbolic link, and its target may belong to another user; replace it by a regular file'
ok "a link: it is not replaced" [ -h "$file" ]
rm "$file"

# An algorithm that the library refuses, under the right sum: thrown away, timed anew, and the new choice is kept.
word() { printf '%016x' "$1"; }
refused=$(word 66)$(word 18)$(word 1)$(word 0)$(word 1)$(word 0)$(word 0)$(word 0)
body "$key" "$(sed -n 4p good | sed "s/\"words\":\"[0-9a-f]*\"/\"words\":\"$refused\"/g")"
ok "refused algorithms: the run trains" run refused run.yaml
ok "each is timed anew" [ "$(cached out) $(timed out)" = "0 $(cat first.timed)" ]
ok "and the next run takes what was found" eval 'run found run.yaml && [ "$(timed out)" = 0 ] && ! grep -q "$refused" "$file"'

# No place to keep anything.
XDG_CACHE_HOME=/dev/null/none
ok "without a place for it the run works" run homeless run.yaml
ok "and says that nothing is kept" says 'cannot save tuning choices for other runs: ' err
XDG_CACHE_HOME=$PWD/cache

# Two at once, of one key, over and over: both end, and what is left is whole.
rm -r "$XDG_CACHE_HOME"
"$assay" train run.yaml --out at-once > at-once.out 2>&1 &
pid=$!
run beside run.yaml
code=$?
wait "$pid"
ok "two runs at once both train" [ "$? $code" = "0 0" ]
ok "and a third takes what they kept" eval 'run third run.yaml && [ "$(timed out)" = 0 ] && [ "$(files)" = 1 ]'

# A run that goes on takes its own choices first, and others' for what it has not met.
steps=4 config saved.yaml "save_steps: 2"
rm -r "$XDG_CACHE_HOME"
ok "a run with a checkpoint" run goes-on saved.yaml
sed -i '/"type":"end"/d; /"type":"close"/d' goes-on/journal.jsonl
rm -r goes-on/checkpoint-4 goes-on/adapter
ok "that goes on" expect 0 train --resume goes-on --json
ok "times nothing" [ "$(timed out)" = 0 ]
ok "and takes its own" [ "$(cached out)" = 0 ]

# Suites and probes do not touch it.
rm -r "$XDG_CACHE_HOME"
cat > suite.yaml << 'SUITE'
name: tiny
cases:
  - {probe: gemm, engine: cublaslt, target: gpu0, phases: burst, seconds: 50ms, require: nothing, options: {type: bf16, m: 64, n: 64, k: 64}}
SUITE
"$assay" check --suite suite.yaml --no-telemetry --out checked > out 2> err
ok "a suite's case ran" says '"type":"result","case":0' checked/journal.jsonl
"$assay" probe gemm --engine cublaslt --target gpu0 --seconds 50ms --out probed type=bf16 m=64 n=64 k=64 > out 2> err
ok "and a probe's" says '"type":"result","case":0' probed/journal.jsonl
ok "neither keeps anything" [ ! -e "$XDG_CACHE_HOME" ]

# A rate of all steps, as an earlier version told it, is no partner of a steady one.
cp -r second older
sed -i 's/"steady_steps":[0-9.]*,//' older/journal.jsonl
ok "two steady rates are compared" eval 'expect 0 compare --all second third; says "^train  *node  *[0-9]* token" out'
"$assay" compare --all older third > out 2> err
ok "one of all steps and one of steady steps are not" eval 'tr -s "\n " " " < out | grep -q "one rate comes from the steady steps, the other (of an earlier version) from all steps"'

# A run too short for a rate says so.
steps=1 config one.yaml
ok "a run of one step" expect 0 train one.yaml --out one
ok "has no rate" [ -z "$(value one 0 tokens_per_s)" ]
ok "and says why" says 'no steady rate: all 1 steps belong to start-up and tuning; [0-9.]* s to the first step, [0-9.]* s tuning' err
ok "in its report as well" says '^tokens_per_s .* the run is too short' out
steps=6 config six.yaml
ok "one of six" expect 0 train six.yaml --out six --no-cache
ok "has one, with start-up and tuning beside it" says '[0-9]* tokens/s steady, over 4 steps; [0-9.]* s to the first step, [0-9.]* s tuning' err
finish

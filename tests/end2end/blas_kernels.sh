#!/bin/sh
# A BLAS library that chose slow kernels for this CPU: check finds others and says how to use them, training and generating take them by
# themselves. The library is a fake that takes 4 ms more for each product, and the marks it is held against are those of a set of our own, orders of magnitude away from
# both its figures: nothing here depends on the speed of the machine. usage: blas_kernels.sh ASSAY FAKE
set -u
assay=$(realpath "$1") fake=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo || lacks "a CPU whose AVX2 kernels OpenBLAS could have chosen"
scratch
unset OPENBLAS_CORETYPE
ASSAY_LIB_OPENBLAS=$fake ASSAY_LIB_OPENBLAS_WHEEL=/none ASSAY_LIB_MKL=/none ASSAY_LIB_AOCL=/none ASSAY_LIB_ONEDNN=/none
export ASSAY_LIB_OPENBLAS ASSAY_LIB_OPENBLAS_WHEEL ASSAY_LIB_MKL ASSAY_LIB_AOCL ASSAY_LIB_ONEDNN
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
FAKE_BLAS_MS=4
export FAKE_BLAS_MS

# 8 x 8 x 8 is 1 kFLOP: 4 ms more for each make 0.26 MFLOPS of it, loops more than 100 MFLOPS; a ceiling has 10 to 300 GFLOPS a
# thread. So the slow kernels reach at most 0.00003 of a ceiling, and loops at least 0.0004.
mkdir set
cat > set/cpu.yaml << 'SET'
sources:
  us: {title: "marks for a library that sleeps", date: 2026-11-23}
ceilings:
  - {name: tiny-gemm, when: {probe: gemm, target: cpu}, pass: 0.0002, fail: 0.0001, above: 1.3, source: us, confidence: low}
SET
cat > suite.yaml << 'SUITE'
name: tiny
cases:
  - {probe: gemm, engine: openblas, target: cpu, seconds: 20ms, options: {type: fp32, m: 8, n: 8, k: 8, threads: 1}}
SUITE
# checked CODE DIR [ARGS..]: the suite, judged by that set
checked() {
	want=$1 dir=$2
	shift 2
	expect "$want" check --suite suite.yaml --expectations set --no-telemetry --out "$dir" "$@"
}
verdict() { grep -oE '"(pass|measured|warn|fail|unknown|skip|untrusted|error)","[a-z_]*"' "$1/results.csv" | head -n 1 | tr -d '"'; }
tries() { grep -o '"tries":"[^"]*"' "$1/journal.jsonl" | sort -u | wc -l; }

ok "slow kernels, and faster ones at hand: exit code 0" checked 0 slow
ok "warn, blas_kernel" [ "$(verdict slow)" = warn,blas_kernel ]
ok "the kernels that the library chose are a field" says '"kernels":"Prescott"' slow/journal.jsonl
ok "and in the report" says 'OpenBLAS (Prescott) ' slow/REPORT.md
ok "the exact command stands in what to do" sh -c 'tr -s "\n " " " < out | grep -qE "OPENBLAS_CORETYPE=[A-Za-z]+ assay check --suite suite.yaml --expectations set --no-telemetry"'
ok "with its gain" sh -c 'tr -s "\n " " " < out | grep -qE "with OPENBLAS_CORETYPE=[A-Za-z]+ it reaches 0\.[0-9]+, x [0-9]+\.[0-9]"'
ok "what was tried is journaled as a case" says '"type":"extend".*"setting":"OPENBLAS_CORETYPE=.*"tries":"OPENBLAS_CORETYPE=' slow/journal.jsonl
ok "the first that helped ended the search" [ "$(tries slow)" = 1 ]
ok "in a worker of its own" [ "$(grep '"type":"begin"' slow/journal.jsonl | sed 's/.*"pid":\([0-9]*\).*/\1/' | sort -u | wc -l)" -ge 2 ]
ok "it is judged alike again, from the record" expect 0 report slow --expectations set
ok "with the same finding" says blas_kernel out

FAKE_BLAS_SLOW=all
export FAKE_BLAS_SLOW
ok "all kernels slow: the verdict stays" checked 1 all
ok "fail, below_ceiling" [ "$(verdict all)" = fail,below_ceiling ]
ok "with what was tried" says 'also tried: OPENBLAS' all/REPORT.md
ok "each of them once, and other libraries' engines" [ "$(tries all)" -ge 2 ]
ok "but not where nothing is to be searched" checked 1 quiet --no-isolate
ok "as told" [ "$(tries quiet)" = 0 ]
# Another library with the same functions, which numpy's would be: the fake again, under another name and with fast kernels of its own.
cp "$fake" other.so
FAKE_BLAS_SLOW=all FAKE_BLAS_OTHER=other.so
export FAKE_BLAS_OTHER
ASSAY_LIB_OPENBLAS_WHEEL=$PWD/other.so checked 0 other
ok "another library is tried too" [ "$(verdict other)" = warn,blas_kernel ]
ok "by its path" says '"tries":"ASSAY_LIB_OPENBLAS=[^"]*/other.so"' other/journal.jsonl
if [ -n "$(ldconfig -p 2> /dev/null | grep -m 1 'libdnnl.so.[23]')" ]; then
	env -u ASSAY_LIB_ONEDNN "$assay" check --suite suite.yaml --expectations set --no-telemetry --out onednn > out 2> err
	ok "oneDNN is tried too" says '"tries":"onednn"' onednn/journal.jsonl
	ok "with the command that calls it" sh -c 'tr -s "\n " " " < out | grep -q "assay probe gemm --engine onednn type=fp32 m=8 n=8 k=8"'
fi
unset FAKE_BLAS_SLOW FAKE_BLAS_OTHER

# killed within the first attempt: what it did not end is done again, what it ended without use is not

cp -r all cut
all=$(tries all)
first=$(awk '/"tries":/ { seen = 1 } seen && /"type":"end"/ { print NR; exit }' cut/journal.jsonl) # of the first attempt
cp -r cut cut1
unset FAKE_BLAS_SLOW
sed -i "$((first + 1)),\$d" cut/journal.jsonl
sed -i "$first,\$d" cut1/journal.jsonl
useless=$(grep -o '"tries":"[^"]*"' cut/journal.jsonl | head -n 1)
ok "a run that is killed behind a useless attempt goes on with the others" sh -c '"$1" check --resume cut --expectations set --no-telemetry > out 2> err; test "$(grep -c "\"tries\":" cut/journal.jsonl)" -ge 2' - "$assay"
ok "and finds what helps" says blas_kernel cut/results.csv
ok "without the useless one again" [ "$(grep -oF "$useless" cut/journal.jsonl | wc -l)" = 1 ]
ok "a run that is killed within its first attempt does it again" sh -c '"$1" check --resume cut1 --expectations set --no-telemetry > out 2> err; grep -q blas_kernel cut1/results.csv' - "$assay"
# Two sizes of one kind: what did not help the first is not tried for the second; another type is tried by itself.
cat > three.yaml << 'SUITE'
name: three
cases:
  - {probe: gemm, engine: openblas, target: cpu, seconds: 20ms, options: {type: fp32, m: 8, n: 8, k: 8, threads: 1}}
  - {probe: gemm, engine: openblas, target: cpu, seconds: 20ms, options: {type: fp32, m: 8, n: 8, k: 4, threads: 1}}
  - {probe: gemm, engine: openblas, target: cpu, seconds: 20ms, options: {type: fp64, m: 8, n: 8, k: 8, threads: 1}}
SUITE
FAKE_BLAS_SLOW=all "$assay" check --suite three.yaml --expectations set --no-telemetry --out three > out 2> err
attempts() { grep '"type":"extend"' three/journal.jsonl | grep -c "\"follows\":{\"case\":$1,"; }
echo "# attempts: $(attempts 0) $(attempts 1) $(attempts 2)"
ok "what helped no case of a kind is not tried for the next of it" [ "$(attempts 0)" -ge 2 -a "$(attempts 1)" = 0 ]
ok "another type has its own attempts" [ "$(attempts 2)" -ge 2 ]

FAKE_BLAS_WRONG="SkylakeX Cooperlake SapphireRapids Haswell Zen"
export FAKE_BLAS_WRONG
ok "other kernels that compute wrong help nobody" checked 1 wrong
ok "the low figure is what fails" [ "$(verdict wrong)" = fail,below_ceiling ]
unset FAKE_BLAS_WRONG
FAKE_BLAS_CRASH="SkylakeX Cooperlake SapphireRapids Haswell"
export FAKE_BLAS_CRASH
ok "kernels that crash cost their worker alone: the next are tried" checked 0 crash
ok "and help" sh -c 'tr -s "\n " " " < out | grep -q "with OPENBLAS.CORETYPE=Zen it reaches "'
ok "and are no fault of the run" sh -c '! grep -q "^error" out'
unset FAKE_BLAS_CRASH

OPENBLAS_CORETYPE=Prescott
export OPENBLAS_CORETYPE
ok "the user's own choice is measured first" checked 0 own
ok "and what would help is told" [ "$(verdict own)" = warn,blas_kernel ]
unset OPENBLAS_CORETYPE
FAKE_BLAS_CORE=Haswell
export FAKE_BLAS_CORE
# Other work on the machine may leave it open, which is no low figure.
passes() { case $(verdict good) in pass,* | untrusted,cpu_contended) ;; *) return 1 ;; esac; }
checked any good
ok "good kernels: nothing is wrong" passes
ok "its kernels are in the report" says 'OpenBLAS (Haswell)' good/REPORT.md
ok "no case is added" [ "$(tries good)" = 0 ]
unset FAKE_BLAS_CORE

# ---- what trains and generates ----
if ! expect 0 make-model --shape tiny --seed 1 --out model || { ! expect 0 tokens model x && says 'built without tokenizers' err; }; then
	echo "# this build has no tokenizers: training and generating are left out"
	finish
fi
FAKE_BLAS_MS=60 FAKE_BLAS_FROM=1e7 # beside 256 x 256 x 256 by loops; the tiny model's own products are quick, whatever the kernels
export FAKE_BLAS_MS FAKE_BLAS_FROM
# says_nothing: of kernels
says_nothing() { ! grep -q 'OPENBLAS_CORETYPE' err; }
# unmoved COMMAND..: it works and says nothing. Of kernels that are all alike a busy machine may let one seem faster; not three times in a row.
unmoved() {
	for _ in 1 2 3; do
		"$@" || return 1
		says_nothing && return 0
	done
	return 1
}
line='OpenBLAS selected its Prescott kernels for this CPU; [A-Za-z]* is x [0-9.]* as fast here and is used (OPENBLAS_CORETYPE='
made() { env "$@" "$assay" generate model --raw abc --tokens 1 --device cpu --no-cache > out 2> err; }
ok "generate takes faster kernels" made A=b
ok "and says so" says "$line" err
ok "all kernels slow: it works and changes nothing" unmoved made FAKE_BLAS_SLOW=all
ok "other kernels wrong: it works" made "FAKE_BLAS_WRONG=SkylakeX Cooperlake SapphireRapids Haswell Zen"
ok "and changes nothing" says_nothing
ok "other kernels that crash: it works" made "FAKE_BLAS_CRASH=SkylakeX Cooperlake SapphireRapids Haswell Zen"
ok "and changes nothing" says_nothing
ok "kernels that this library does not have: it works" made "FAKE_BLAS_LACKS=SkylakeX Cooperlake SapphireRapids Haswell Zen"
ok "and changes nothing" says_nothing
ok "the user's own choice is respected" made OPENBLAS_CORETYPE=Prescott
ok "without a word" says_nothing

for i in $(seq 8); do
	echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
cat > train.yaml << 'CONFIG'
model: {name_or_path: model, chat_template: qwen2.5}
lora: {r: 2, alpha: 4}
data: {train: rows.jsonl, max_seq_length: 160}
training: {device: cpu, max_steps: 4, save_steps: 2, per_device_train_batch_size: 1, learning_rate: 1e-3}
CONFIG
ok "train takes faster kernels" expect 0 train train.yaml --no-telemetry --no-cache --out trained
ok "and says so" says "$line" err
ok "in the journal too, with the library's own choice" says '"phase":"kernels","values":{"kernels":"[A-Za-z]*","kernels_chosen":"Prescott","kernels_gain":' trained/journal.jsonl
used=$(sed -n 's/.*"phase":"kernels","values":{"kernels":"\([A-Za-z]*\)".*/\1/p' trained/journal.jsonl | head -n 1)
# cut: the run ends as if it had been killed behind its second step, without having told its end
sed -i '/"type":"end"/,$d' trained/journal.jsonl
rm -rf trained/checkpoint-4 trained/adapter
echo checkpoint-2 > trained/latest
FAKE_BLAS_SLOW=all
export FAKE_BLAS_SLOW
ok "a run that is gone on with takes the kernels it had, and measures none" expect 0 train --resume trained
ok "as its journal says" [ "$(grep -c "\"phase\":\"kernels\",\"values\":{\"kernels\":\"$used\"}" trained/journal.jsonl)" = 1 ]
unset FAKE_BLAS_SLOW

# Kept for later runs: a library whose kernels are all slow now is believed to have what was found before.
ok "with --no-cache nothing is kept" [ ! -e cache/assay/kernels ]
kept_made() { env "$@" "$assay" generate model --raw abc --tokens 1 --device cpu > out 2> err; }
found="OpenBLAS selected its Prescott kernels for this CPU; an earlier run found [A-Za-z]* x [0-9.]* as fast here (OPENBLAS_CORETYPE="
ok "generate times what it does not know" kept_made A=b
ok "as it says" says "$line" err
ok "and keeps it" [ "$(find cache/assay/kernels -name '*.kept' | wc -l)" = 1 ]
ok "the next one times nothing" kept_made FAKE_BLAS_SLOW=all
ok "and takes it from there" says "$found" err
ok "with --no-cache it does not, whatever was found" unmoved made FAKE_BLAS_SLOW=all
cp "$fake" moved.so
again_made() { rm -f kept_before && ls cache/assay/kernels > kept_before; kept_made "$@"; code=$?; (cd cache/assay/kernels && ls | grep -vxFf "$tmp/kept_before" | xargs -r rm); return $code; }
ok "for another library's file nothing is known, and nothing is taken" unmoved again_made ASSAY_LIB_OPENBLAS="$PWD/moved.so" FAKE_BLAS_SLOW=all
ok "train takes it too" expect 0 train train.yaml --no-telemetry --out kept
ok "as it says" says "$found" err
ok "and its journal, with the key" says '"phase":"kernels","values":{"kernels":"[A-Za-z]*","kernels_chosen":"Prescott","kernels_gain":[0-9.]*,"kernels_from":"cache [0-9a-f]*"' kept/journal.jsonl
head -c 100 cache/assay/kernels/*.kept > half
cp half cache/assay/kernels/*.kept
ok "what is damaged there is timed again" kept_made A=b
ok "as is told" says 'it is truncated or damaged; timing OpenBLAS kernels again' err
ok "and found again" says "$line" err
finish

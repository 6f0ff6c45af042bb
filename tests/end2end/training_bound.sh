#!/bin/sh
# tools/training-bound over a run's CSV as `assay report` writes it, its sum by hand; runs that lack a part are refused. usage: training_bound.sh ROOT
set -u
root=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
mkdir bin
printf '#!/bin/sh\ncat "$2"\n' > bin/assay # report RUN --format csv
chmod +x bin/assay
assay=$PWD/bin/assay
head='Problem,Provider,OperationKind,Operation,m,n,k,Flops,Runtime,GB/s,Judged'
product() { printf '1,"cuBLASLt","gemm","algo",8192,%s,%s,%.0f,%s,,1\n' "$1" "$2" "$(echo "$1 $2" | awk '{ print 2 * 8192 * $1 * $2 }')" "$3"; }
{
	echo "$head"
	for of in '4608 3584' '3584 3584' '37888 3584' '3584 18944' '3584 4608' '3584 3584' '3584 37888' '18944 3584'; do
		# shellcheck disable=SC2086 -- two words
		product $of 1
	done
	product 152064 3584 10
	echo '2,"cuDNN","attention","x",,,,100,2,,1'
	echo '2,"cuDNN","attention","x",,,,250,4,,1'
	echo '3,"own","attention","x",,,,100,1,,1'
	echo '4,"own","memory","copy_v10, 128 threads, a tile a block",,,,0,5,3000,1'
	echo '4,"own","memory","copy",,,,0,5,9999,0'
} > run
ok "products of 28 layers and of the head, both ways" eval '"$root/tools/training-bound" "$assay" run > out && says "^products 244.0$" out'
ok "attention by the faster engine of each pass" says '^attention 140.0$' out
# 239 TFLOP in 244 ms; 7.937 TFLOP of LoRA. 28 x 8192 x 459776 B, 4.983 GB of logits, 4.844 GB of the optimiser, at 3 TB/s
ok "LoRA at the rate of the products" eval 'awk "/^LoRA/ { exit !(\$5 > 8.2 && \$5 < 8.5) }" out'
ok "what memory moves at the copy's rate" says '^memory 38.4$' out
ok "and their sum as a rate" eval 'awk "/^step/ { ms = \$2 } /^bound/ { r = \$2 } END { d = r - 8192 / ms * 1e3; exit !(ms > 430 && ms < 431 && d * d < 40) }" out'
mkdir trained
printf '%s\n' '{"type":"telemetry","signals":{"step_s":{"kind":"gauge","v":[9]}}}' '{"type":"result","values":{"steps":4.0,"step_s":0.4782,"mfu":0.6}}' > trained/journal.jsonl
ok "beside a run's median step, the share of it" eval '"$root/tools/training-bound" "$assay" run trained > out && says "^trained 478.2 ms$" out && says "^share 0.901 " out'
grep -v 152064 run > less
ok "a run without all products gives no bound" eval '! "$root/tools/training-bound" "$assay" less > out && says "lacks" out'
grep -v attention run > less
ok "nor one without attention" eval '! "$root/tools/training-bound" "$assay" less > out && says "lacks" out'
# FP8: 7 products of 2 ms for 28 layers, that of o twice: 28 x 16 ms; the head in BF16: 2 x 10 ms
{
	echo 'Problem,OperationKind,m,n,k,Runtime,Judged,Key'
	for of in 4608,3584 3584,3584 37888,3584 3584,18944 3584,4608 3584,37888 18944,3584; do
		echo "1,\"gemm\",8192,$of,2,1,\"gemm engine=cublaslt scale=block, type=e4m3\""
		echo "1,\"gemm\",8192,$of,1,1,\"gemm engine=cublaslt scale=tensor type=e4m3\""
	done
} > low
ok "the bound of FP8 has the products with block scales" eval '"$root/tools/training-bound" --fp8 low "$assay" run trained > out && says "^products 468.0$" out'
# 28 x 8192 tokens x 110080 B at 3 TB/s
ok "and what quantization moves" says '^quantization 8.4$' out
ok "beside a run in FP8" says '^share ' out
ok "the other parts are those of BF16" eval 'says "^attention 140.0$" out && says "^memory 38.4$" out'
grep -v 37888,3584 low > less
ok "a run without all products in FP8 gives no bound" eval '! "$root/tools/training-bound" --fp8 less "$assay" run > out && says "^less: the run lacks products in E4M3 .*: 6 of 7" out'
ok "how it is called is told" eval '! "$root/tools/training-bound" 2> err && says "^usage: training-bound \[--fp8 FP8RUN\]" err'
finish

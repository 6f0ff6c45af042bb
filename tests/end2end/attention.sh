#!/bin/sh
# Attention by the real binary: on the CPU, by block lists made and read, with inputs that do not fit, on a machine without a
# GPU, and planned on one that is not there. usage: attention.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
small="probe attention batch=1 heads=2 head_dim=32 --seconds 100ms --no-telemetry"

# The CPU: a machine under load may call a figure untrusted (2), but it was verified and shown.
measured() { # RUN ARGS..
	run=$1
	shift
	"$assay" "$@" --out "$run" > out 2> err
	code=$?
	[ $code = 0 ] || [ $code = 2 ]
}
whole() { [ -n "$(value "$1" "$2" wrong_total)" ] && [ "$(value "$1" "$2" wrong_checked)" = "$(value "$1" "$2" wrong_total)" ]; }
ok "dense and block-sparse attention run on the CPU" measured cpu $small seq=256 mask=causal pattern=none,mask block_q=64 block_k=64 --target cpu
ok "every element of both was looked at" sh -c '[ -n "$1" ]' sh "$(whole cpu 0 && whole cpu 1 && echo yes)"
ok "causal pairs are counted exactly" [ "$(value cpu 0 pairs_kept)" = 65792.0 ]
ok "by lists as well" [ "$(value cpu 1 pairs_kept)" = 65792.0 ]
ok "the report has their table" says 'us per head' cpu/REPORT.md
ok "which names kernel and engine" says 'FP16 attention B1 H2 S256 D32 causal.*own loops.*tiles of 64 x 64' cpu/REPORT.md
ok "making the lists is told apart" [ -n "$(value cpu 1 blocks_build_s)" ]

ok "so do its gradients" measured back $small seq=128 mask=causal pass=backward --target cpu
ok "in every element too" whole back 0
ok "with two and a half times the work" says 'own loops.*in double precision' back/REPORT.md

# A block file: two query blocks of 128; the second sees both key blocks, the first its own.
n32() { for x in "$@"; do printf "\\$(printf %03o $((x % 256)))\\$(printf %03o $((x / 256)))\\000\\000"; done; }
{ printf assayblk; n32 1 1 1 2 2 128 128 0 1 0 0 2 0 0 1; } > good.blocks
{ printf assayblk; n32 1 1 1 2 2 128 128 0 1 0 0 2 0 1 0; } > unsorted.blocks
{ printf assayblk; n32 1 1 1 2 2 128 128 0 1 0 7 2 0 0 1; } > outside.blocks
head -c 50 good.blocks > cut.blocks
ok "lists come from a file" measured file $small seq=256 pattern=file file=good.blocks --target cpu
ok "and keep what it says" [ "$(value file 0 pairs_kept)" = 98304.0 ]
ok "unsorted lists are refused" expect 64 $small seq=256 pattern=file file=unsorted.blocks --target cpu
ok "with file, offset and place" says 'unsorted.blocks: offset 64: (batch 0, head 0, query block 1): key block 0 follows a higher one' err
ok "a block outside is refused" expect 64 $small seq=256 pattern=file file=outside.blocks --target cpu
ok "with its number" says 'offset 48: (batch 0, head 0, query block 0): key block 7 does not exist' err
ok "a file cut short is refused" expect 64 $small seq=256 pattern=file file=cut.blocks --target cpu
ok "lists of another shape are refused" expect 64 $small seq=300 pattern=file file=good.blocks --target cpu
ok "full blocks that the mask cuts are refused" expect 64 $small seq=256 mask=causal pattern=file file=good.blocks --target cpu
ok "and told to be partial" says 'key block 0 is listed as full, but the mask or the end of the sequence cuts it' err

# Shapes that nothing takes.
ok "a head dimension out of range is refused" expect 64 $small head_dim=512
ok "a window's sides without a window are refused" expect 64 $small mask=causal left=5
ok "heads that key heads do not divide are refused" expect 64 $small kv_heads=3
ok "a preset that is not there is refused" expect 64 probe attention --preset d1
ok "with the nearest" says "did you mean 'd0'" err

# A machine without a GPU: each case of the preset says why it is not measured.
"$assay" probe attention --preset d0 --machine "$root/tests/replay/cpu-vm-2core" --out none > out 2> err
ok "without a GPU the table's six shapes stay in the plan, for each engine" says '^18 cases: 18 skip' out
ok "each with its reason" says '"cause":"no_hardware"' none/journal.jsonl

# A build without kernels (no nvcc) on a machine with a GPU: unknown, and why; cuDNN alone needs none of them.
if "$assay" list kernels | grep -q attention_sm90; then
	n=$((n + 2))
	echo "ok $((n - 1)) - our kernels are missing # SKIP this build has them"
	echo "ok $n - so are those of block lists # SKIP this build has them"
else
	missing() { # ENGINE FILE WORDS
		rm -rf missing
		ASSAY_LIB_NVML=$fakes/libnvidia-ml.so.1 ASSAY_LIB_CUDA=$fakes/libcuda.so.1 FAKE_NVML_FILE=$root/tests/fake/h100.json "$assay" probe attention \
			--engine "$1" --target gpu batch=1 heads=2 seq=128 ${3-} --out missing > out 2> err
		[ $? = 2 ] && says "unknown.*attention" out && tr -s ' \n' ' ' < out | grep -q "this program was built without the kernel file $2 (no nvcc at build time)" &&
			says '"cause":"library_missing"' missing/journal.jsonl
	}
	ok "our kernels are missing" missing own attention_sm90
	ok "so are those of block lists" missing sparse 'attention_[a-z0-9_]*' pattern=random
fi

# The preset on a GPU that is not there.
FAKE_NVML_FILE="$root/tests/fake/h100.json" "$assay" probe attention --preset d0 --engine cudnn heads=1,2 batch=1 --plan > out 2> err
ok "what is given beside a preset goes first" sh -c 'grep -q "attention engine=cudnn batch=1 .* heads=2 " out && ! grep -q "heads=96" out'
finish

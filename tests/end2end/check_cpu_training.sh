#!/bin/sh
# What tools/check-cpu-training makes of the one step that needs neither peers nor packages. usage: check_cpu_training.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
command -v python3 > /dev/null || { echo "1..0 # SKIP there is no python3"; exit 0; }
scratch
export ASSAY="$assay" PYTHONDONTWRITEBYTECODE=1
unset ASSAY_SMOLLM2 ASSAY_BFCL
ok "a 7B shape is planned ten times from its headers" sh -c '"$1/tools/check-cpu-training" checked plan > out 2> err' sh "$root"
ok "its seconds are kept" eval '[ "$(grep -c "^  [0-9.e-]*,*$" checked/plan.json)" = 10 ]'
ok "and stand beside the target in the table" says '^plan of qwen2-7b .* ms  *<= 1 s ' checked/table.txt
ok "steps are listed with their exit code" says '^plan  *exit   0 ' checked/steps.txt
ok "a step that trains asks for the model" sh -c '! "$1/tools/check-cpu-training" again train > out 2> err' sh "$root"
ok "by the variable that names it" says 'ASSAY_SMOLLM2 names no GGUF file' err
finish

#!/bin/sh
# assay compare on journals of a virtual machine: unmodified runs, a planted slowdown, several runs of each side.
# usage: drift.sh ASSAY RESULTS
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd) results=$(cd "$2" && pwd)
. "$here/tap.sh"
. "$here/../journal_of.sh"
scratch
first=$results/2026-11-21-cpu-2core/quick second=$results/2026-11-21-cpu-2core/quick-again
[ -d "$first" ] && [ -d "$second" ] || lacks "no recorded runs of one virtual machine"
# slow FROM TO SHARE: a copy of the run in which the FP32 product's sustained rate is SHARE of what it was
slow() {
	mkdir -p "$2"
	journal_of "$1" > journal
	id=$(grep -o '"case":[0-9]*,"key":"gemm engine=openblas[^"]*type=fp32"' journal | sed 's/"case":\([0-9]*\),.*/\1/')
	awk -v id="$id" -v share="$3" '
		index($0, "\"type\":\"result\",\"case\":" id ",\"phase\":\"sustained\"") && match($0, /"flop_rate":[0-9.e+]*/) {
			rate = substr($0, RSTART + 12, RLENGTH - 12)
			$0 = substr($0, 1, RSTART + 11) sprintf("%.6f", rate * share) substr($0, RSTART + RLENGTH)
			changed++
		}
		{ print }
		END { exit changed != 1 }' journal > "$2/journal.jsonl"
}

ok "two unmodified runs give no regression" expect 0 compare "$first" "$second"
ok "nor the other way round" sh -c '"$1" compare "$2" "$3" > out 2> err; [ $? != 1 ]' sh "$assay" "$second" "$first"
ok "no case is called slower" says '^one machine: 0 of ' out
ok "what differs is not supported" says 'not supported by the noise' out
ok "and what to do is said" says 'repeat each run twice (assay compare A1 A2 -- B1 B2)' out
ok "JSON has it too" sh -c '"$1" compare --json "$2" "$3" > out; grep -q "\"advice\": \"not supported" out && grep -q "\"drift_factor\": 1\.[6-9]" out' sh "$assay" "$second" "$first"

ok "a product at half its rate is planted" slow "$second" half 0.5
ok "it is found in one round" expect 1 compare "$first" half
ok "by name" says 'FP32 GEMM 2048, OpenBLAS.*slower' out
ok "and it alone" says '^one machine: 1 of .* cases slower (1 of them judged)' out

ok "a product at 0.75 of its rate is planted" slow "$first" three 0.75
ok "and again" slow "$second" four 0.75
ok "one round does not support it" expect 2 compare "$first" four
ok "which is said" says 'FP32 GEMM 2048, OpenBLAS.*not supported by the noise' out
ok "two of each side do" expect 1 compare "$first" "$second" -- three four
ok "by name as well" says 'FP32 GEMM 2048, OpenBLAS.*slower' out
ok "unmodified runs on both sides do not" sh -c '"$1" compare "$2" "$3" -- "$3" "$2" > out 2> err; [ $? != 1 ]' sh "$assay" "$first" "$second"
ok "-- in front changes nothing" expect 1 compare -- "$first" half
ok "-- in a fleet is refused" expect 64 compare --as fleet "$first" -- "$second"
ok "with the reason" says '-- separates the earlier and the later runs of one machine' err

finish

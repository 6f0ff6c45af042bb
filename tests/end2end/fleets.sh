#!/bin/sh
# A recorded run of four H200 with its figures edited: slow fleets, a slow host link, a lower fail mark, and what a site
# file states of clocks. The journal is the only record, so an edited one is a machine that is so.
# usage: fleets.sh ASSAY ROOT FAKES
set -u
assay=$1 run=$2/results/2026-11-22-h200-sxm-x4/quick fakes=$3
. "$2/tests/journal_of.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0 fail=0

# Multiplies each "FIELD":NUMBER of result lines that hold WORD: edit NAME FACTOR WORD FIELD...
edit() {
	name=$1 factor=$2 word=$3
	shift 3
	mkdir "$tmp/$name"
	journal_of "$run" | awk -v factor="$factor" -v word="$word" -v fields="$*" '
		BEGIN { count = split(fields, field, " ") }
		index($0, "\"type\":\"result\"") && (word == "" || index($0, word)) {
			for (i = 1; i <= count; i++)
				while (match($0, "\"" field[i] "\":[0-9.e+]+")) {
					split(substr($0, RSTART, RLENGTH), part, ":")
					$0 = substr($0, 1, RSTART - 1) "\"" field[i] "\"=" \
						sprintf("%.12g", part[2] * factor) substr($0, RSTART + RLENGTH)
				}
			gsub(/"=/, "\":")
		}
		{ print }' > "$tmp/$name/journal.jsonl"
}

# what, exit code, a pattern that the report has, a pattern that it has not; then the arguments of report
judged() {
	what=$1 want=$2 has=$3 not=$4
	shift 4
	n=$((n + 1))
	code=0
	"$assay" report "$@" --format csv > "$tmp/out" 2> "$tmp/err" || code=$?
	if [ "$code" = "$want" ] && grep -q "$has" "$tmp/out" "$tmp/err" && ! grep -q "$not" "$tmp/out"; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what: exit $code, not $want; wants $has, not $not"
		grep '"fail"' "$tmp/out" | head -5 | cut -c1-400 | sed 's/^/# /'
		sed 's/^/# /' "$tmp/err"
		fail=1
	fi
}

judged 'as it was recorded it deserves a look' 0 '"warn"' '"fail"' "$run"

edit slow 0.75 '' flop_rate byte_rate link_rate clock_hz
judged 'all GPUs 25 % slow fail' 1 '"fail","fleet_low"' '"fail","below_band","[^"]*gpu[0-3]:' "$tmp/slow"
# run directory, what, a pattern of the one case that fails as fleet_low
one_finding() {
	n=$((n + 1))
	"$assay" report "$1" --format json | grep -A 1 '^   *"cause": "fleet_low",$' | grep '"reason": "all 4 GPUs' > "$tmp/found"
	if [ "$(sort -u "$tmp/found" | wc -l)" = 1 ] && grep -q "$3" "$tmp/found"; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$tmp/found"
		fail=1
	fi
}

one_finding "$tmp/slow" 'one finding names the clock' 'compute [^(]*(clock 0\.'

edit pipe 0.75 '' flop_rate byte_rate
one_finding "$tmp/pipe" 'without a signal that fell no factor is blamed' 'compute [^(]*(no factor explains it)'

edit low 0.88 '' flop_rate byte_rate clock_hz
judged 'all 12 % slow fail where two cards or more made the range' 1 '"fail","fleet_low"' '"fail","unexplained"' "$tmp/low"

edit slightly 0.92 '' flop_rate byte_rate clock_hz
judged 'all 8 % slow warn' 0 '"warn","below_band"' '"fail"' "$tmp/slightly"

edit link 0.69 '"link_rate"' link_rate
judged '38 of 55 GB/s from the host of a virtual machine: the placement is unknown' 1 'NUMA placement is unknown' 'NUMA distance' "$tmp/link"

echo 'sm_clock: 9 MHz' > "$tmp/site.yaml"
judged 'a stated clock that no GPU has is refused with its place' 64 'site.yaml:1: sm_clock of 9 MHz is not from' '"fail"' "$run" --site "$tmp/site.yaml"
echo 'sm_clok: 1410 MHz' > "$tmp/site.yaml"
judged 'a misspelt statement is refused with the nearest' 64 'sm_clock' '"fail"' "$run" --site "$tmp/site.yaml"
echo 'sm_clock: 1200 MHz' > "$tmp/site.yaml"
judged 'a GPU that ran faster than the stated clock is not what was stated' 1 '' '"fleet_low"' "$run" --site "$tmp/site.yaml"

# The rate of the fake GPU, and so the exit code, do not matter here.
n=$((n + 1))
LD_LIBRARY_PATH=$fakes "$assay" probe link --target gpu0 --seconds 200ms --out "$tmp/copy" --format json > "$tmp/copied" 2> /dev/null
if grep -q '"cpu_node": [0-9]' "$tmp/copied"; then
	echo "ok $n - a copy records the node of the CPU that allocated its host memory"
elif grep -q 'no nvcc at build time' "$tmp/copied"; then
	echo "ok $n - a copy records the node of its CPU # SKIP this build has no kernels"
else
	echo "not ok $n - a copy records the node of the CPU that allocated its host memory"
	fail=1
fi
echo "1..$n"
exit "$fail"

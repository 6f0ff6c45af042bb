#!/bin/sh
# Profiles of real programs whose records are below results/: this build makes of them the files that lie there, and finds what
# Holistic Trace Analysis found in their traces (hta.tsv, which tests/oracles/profile_hta.py wrote: what, its number, the slack).
# usage: profile_hta.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch

# What hta.tsv's lines are called, and our number.
ours() { # RUN
	awk 'FNR == 1 { next }
		{
			kind = substr($0, 1, index($0, ",") - 1); match($0, /,"/); begin = RSTART + 2; rest = substr($0, begin); end = index(rest, "\",")
			split(substr(rest, end + 2), v, ",")
			if (kind == "kernel" || kind == "runtime") {
				name = kind " " substr(rest, 1, end - 1)
				printf "%s, count\t%d\n%s, us\t%.3f\n", name, v[1], name, v[2] / 1e3
			}
		}' "$1/summary.csv"
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{
			who = "pid " $at["pid"]; sum = 0
			for (i = at["span_ns"] + 1; i < at["busy_ns"]; i++) sum += $i
			printf "%s idle, us\t%.3f\n%s compute, us\t%.3f\n", who, ($at["span_ns"] - $at["busy_ns"]) / 1e3, who, $at["compute_union_ns"] / 1e3
			printf "%s busy, us\t%.3f\n%s states add up, ns\t%.3f\n", who, $at["busy_ns"] / 1e3, who, sum
			communication = $at["communication_union_ns"]
			if (communication) printf "%s overlap, %%\t%.3f\n", who, 100 * $at["communication_hidden_ns"] / communication
			compute_all += $at["compute_union_ns"]; communication_all += communication
		}
		END { printf "computation, us\t%.3f\ncommunication, us\t%.3f\n", compute_all / 1e3, communication_all / 1e3 }' "$1/breakdown.csv"
}
again() { # DIR: its files, from its records
	rm -rf run && mkdir run && cp "$1"/journal.jsonl* run/ && xz -d -c "$1/rings.tar.xz" | tar -C run -xf - && "$assay" report run --write > /dev/null || return
	for file in PROFILE.md nccl.csv breakdown.csv; do cmp "$1/$file" "run/$file" || return; done
}
agrees() { # FILE: every line of HTA's is within
	ours run > ours.tsv
	awk -F '\t' 'NR == FNR { have[$1] = $2; next }
		{
			n++
			if (!($1 in have)) { print "not ours: " $1; bad = 1; next }
			d = have[$1] - $2
			if (d > $3 || d < -$3) { print $1 ": ours " have[$1] ", HTA " $2 ", slack " $3; bad = 1 }
		}
		END { exit bad || n < 20 }' ours.tsv "$1"
}
counted() { # every kernel of ours is one of HTA's
	awk -F '\t' 'NR == FNR { have[$1] = 1; next } /^(kernel|runtime)/ && !($1 in have) { print "not in HTA: " $1; bad = 1 } END { exit bad }' "$1" ours.tsv
}
planted() { # a number that is off is seen
	awk -F '\t' 'NR == 1 { $2 = $2 + 1 } { print $1 "\t" $2 "\t" $3 }' "$1" > off.tsv
	! agrees off.tsv
}

found=0
for list in "$root"/results/*/profile_*/hta.tsv; do
	[ -f "$list" ] || continue
	found=$((found + 1)) dir=${list%/hta.tsv}
	what=${dir#"$root/results/"}
	ok "$what: the records give the committed files" again "$dir"
	ok "$what: counts, times, idle, overlap are Holistic Trace Analysis's" agrees "$list"
	ok "$what: it has every kernel and call" counted "$list"
	ok "$what: a count that differs is seen" planted "$list"
done
ok "there are such profiles" [ "$found" -gt 0 ]
finish

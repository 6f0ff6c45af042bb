#!/bin/sh
# Two-node run directories, DERIVED: two runs of one H100 kept below results/ are made the ranks of a team that never was, and
# facts of the second are changed one by one. What the report must say of each.
# usage: nodes.sh ASSAY ROOT
set -u
assay=$(realpath "$1") kept=$(realpath "$2")/results/2026-11-21-h100-sxm
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/../end2end/tap.sh"
. "$here/../journal_of.sh"
b=run/nodes/node-b/rank-1/journal.jsonl

team() { # RANK OFFSET AT
	printf '"team":{"rank":%d,"size":2,"node":%d,"nodes":[{"name":"node-a","ranks":[0],"offset_ns":0,"error_ns":0,"at":0},' "$1" "$1"
	printf '{"name":"node-b","ranks":[1],"offset_ns":%s,"error_ns":41000,"at":%s}]},' "$2" "$3"
}
join() { # FROM TO RANK: the run as that rank's; the second's clock is 60.41 s ahead and gains 0.9 ms
	journal_of "$1" | sed -e "1s/\"type\":\"open\",/&$(team "$3" 60410000000 28948527122)/" \
		-e "\$s/\"ending\":\"done\",/&$(team "$3" 60410900000 88809371743)/" > "$2"
}
derive() { # [SED..]: a whole team of two, facts of the second changed
	rm -rf run
	mkdir -p run/nodes/node-b/rank-1
	join "$kept/quick" run/journal.jsonl 0
	join "$kept/quick-again" $b 1
	[ $# = 0 ] || sed -i "$@" $b
}
report() { "$assay" report run --real-names --format "$1" > "$1.out" 2> err || [ $? -le 2 ]; }
differs() { # PATTERN: the table has such a warning
	report markdown && grep -q "^| warn | $1" markdown.out
}

derive
report markdown
ok "two nodes of one kind do not differ in what hurts" sh -c '! grep -q "^| warn | .*| .*| .*methods/nodes.md" markdown.out'
ok ".. and the second's clock is told" grep -q 'node-b .* whole .* 60.410 s ahead of rank 0.s, ± 41.0 µs; 900.0 µs more at the end' markdown.out
ok ".. and each case is of a node" grep -q '^### node-b · GPU 0 · NVIDIA H100' markdown.out
for change in \
	's/580\.159\.04/570.86.15/g#driver: version | 580.159.04 (1 node) | 570.86.15: node-b' \
	's/"version":"2.28.3"/"version":"2.21.5"/#software: nccl version | 2.28.3 (1 node) | 2.21.5: node-b' \
	's/"vbios":"[^"]*"/"vbios":"96.00.74.00.01"/#GPUs: vbios | 96.00.DA.00.0C (1 node) | 96.00.74.00.01: node-b' \
	's/"power_limit_w":700/"power_limit_w":650/#GPUs: power limit, enforced | 700 W (1 node) | 650 W: node-b' \
	's/"sm_clock_max_mhz":1980/"sm_clock_max_mhz":1755/#GPUs: SM clock, maximum | 1980 MHz (1 node) | 1755 MHz: node-b' \
	's/"pcie_width":16/"pcie_width":8/#GPUs: .* | 16.* (1 node) | 8.*: node-b' \
	's/"device":"eth0"/"device":"eth1","kind":"ethernet","state":"up"},{"device":"eth0"/#how many: port | 1 (1 node) | 2: node-b' \
	's/"threads":16/"threads":32/#CPU: threads | 16 (1 node) | 32: node-b'; do
	derive "2${change%%#*}"
	ok "told: ${change#*#}" differs "${change#*#}"
done
derive '2s/"kernel":"[^"]*"/"kernel":"5.15.0"/'
report markdown
ok "another kernel is shown and hurts nothing that is known" grep -q '^| . | system: kernel | .* | 5.15.0: node-b | . |' markdown.out

# A compute case of the other node at half its rate: of two siblings none is judged, and the figures stand by node.
derive
ok "the run is rendered in every form" sh -c "'$assay' report run --write --real-names > /dev/null; [ \$? -le 2 ] && [ -s run/nodes.csv ] && [ -s run/report.html ]"
cp run/REPORT.md first.md
mv run elsewhere
"$assay" report elsewhere --format markdown --real-names > again.md
ok ".. and again elsewhere, byte for byte" cmp first.md again.md
mv elsewhere run

rm $b
ok "a missing node: exit code 2" expect 2 report run --real-names
ok ".. named first" says 'inconclusive: node node-b is missing (rank 1: its journal was not received)' out
ok ".. with its cases as unknown" says 'no result from rank 1 on node-b' out
derive
head -c 300000 $b > cut && mv cut $b
ok "a torn journal: exit code 2" expect 2 report run --real-names
ok ".. named" says 'node node-b is cut (rank 1: its journal ends early)' out
head -c 65536 /dev/urandom > $b
ok "garbage for a journal: exit code 2" expect 2 report run --real-names
ok ".. named" says 'node node-b is missing (rank 1: it does not begin like' out
derive '1s/"rank":1,/"rank":0,/'
ok "a journal twice: exit code 2" expect 2 report run --real-names
ok ".. named" says 'it belongs to another rank or team' out
derive '1s/"build":"[^"]*"/"build":"0123456789abcdef"/'
ok "another build: exit code 2" expect 2 report run --real-names
ok ".. named" says 'it belongs to another program, build or seed' out
derive
sed -i '1s/"name":"node-b"/"name":"..\/..\/..\/node-b"/' run/journal.jsonl
ok "a name that leads out is not followed: exit code 2" expect 2 report run --real-names
ok ".. nothing passes for it" says 'is missing (rank 1: its journal was not received)' out
derive
ok "a run of two nodes is no baseline of one" expect 64 health --run run --state health.json
ok ".. and it says why" says 'run is a run of 2 nodes; a baseline belongs to one node' err
finish

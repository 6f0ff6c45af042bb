#!/bin/sh
# The fleet report of assay deploy: a slow node and differences between nodes. The ssh of this test opens no connection: each host is a shell of this
# machine with a home folder of its own. The program that is copied there gives a recorded run of a real H100, which one host has 10 % slower, another
# one with another driver and kernel. usage: deploy_fleet.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$root/tests/journal_of.sh"
scratch
mkdir -p bin bundle/lib
cat > bin/ssh << SSH
#!/bin/sh
while [ "\$1" != -- ]; do shift; done
mkdir -p "$tmp/home/\$2"
unset XDG_CACHE_HOME
HOME=$tmp/home/\$2 NODE=\$2 exec sh -c "\$3"
SSH
printf '#!/bin/sh\nmkdir -p assay-runs/1 && exec cp "%s/run-$NODE.jsonl" assay-runs/1/journal.jsonl\n' "$tmp" > bundle/assay
echo x > bundle/lib/libx.so.1
chmod +x bin/ssh bundle/assay
PATH=$tmp/bin:$PATH
journal_of "$root/results/2026-11-23-h100-sxm/quick" > run.jsonl
cp run.jsonl run-n1.jsonl
scaled_rates 0.9 < run.jsonl > run-n2.jsonl
scaled_rates 0.998 < run.jsonl > run-n3.jsonl
scaled_rates 1.002 < run.jsonl > run-n4.jsonl
sed -i 's/6\.18\.44-fc-v657-gpu/6.18.45-other/; s/580\.159\.04/580.200.01/g' run-n4.jsonl

deploy() { # CODE OUT HOSTS..
	code=$1 folder=$2
	shift 2
	expect "$code" deploy "$@" --bundle bundle --out "$folder" --patience 60s -- info summary
}
ok "a slow node fails the deployment" deploy 1 slow 'n[1-4]'
ok ".. although the command passed on each host" [ "$(grep -c '^n[1-4] *cleaned *0 ' slow/fleet.txt)" = 4 ]
ok ".. the report names the node, the case and the deviation" says '^n2 *BF16 GEMM 8192, cuBLASLt *gpu0 .* -10\.0 % *slow ' slow/fleet.txt
ok ".. and no other node" eval '! grep -q "^n[134] .* slow " slow/fleet.txt'
ok ".. another driver is a difference" says 'driver.* 580\.159\.04 *-> 580\.200\.01 .*n4$' slow/fleet.txt
ok ".. and another kernel" says 'kernel .* 6\.18\.44-fc-v657-gpu *-> 6\.18\.45-other .*n4$' slow/fleet.txt
ok ".. all of this is on the screen too" eval 'head -n "$(wc -l < slow/fleet.txt)" out | cmp - slow/fleet.txt'
ok "--resume reports it again" expect 1 deploy --resume slow
cp run-n1.jsonl run-n2.jsonl
ok "differences alone pass" deploy 0 even 'n[1-4]'
ok ".. without an outlier" says '^4 machines: 0 slow and 0 fast outliers .* [1-9][0-9]* differences of inventory' even/fleet.txt
finish

#!/bin/sh
# Views of `assay top` as people run them: settings from every place, faked NVLinks with known rates, a driver that hangs, a GPU
# that is lost, ports of a made-up sysfs, a terminal and none. usage: top_links.sh ASSAY NVML-FAKE ROOT
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
for name in $(env | sed -n 's/^\(NCCL_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done
mkdir -p sys/class
export NCCL_CONF_FILE="$tmp/none.conf" ASSAY_SYS="$tmp/sys" ASSAY_LIB_NVML="$nvml" FAKE_NVML_FILE="$root/tests/fake/h100x4.json"

none_left() { # helpers of ours: of this folder
	sleep 0.2
	for p in /proc/[0-9]*; do
		if tr '\0' ' ' < "$p/cmdline" | grep -q ' __facts ' && tr '\0' '\n' < "$p/environ" | grep -q "^ASSAY_SYS=$tmp/sys"; then
			echo "$p" && return 1
		fi
	done 2> /dev/null
	return 0
}

# Settings
ok "settings show" expect 0 top nccl --once
ok "the file's own variable among them" says '^  NCCL_CONF_FILE=.*environment  ok ' out
printf '# mine\nNCCL_P2P_DISABLE=1\nNCCL_DEBUG=TRACE\nNCCL_SOCKET_NTHREDS=4\n' > mine.conf
NCCL_CONF_FILE=$tmp/mine.conf NCCL_DEBUG=WARN; export NCCL_CONF_FILE NCCL_DEBUG
ok "one that forbids peers is a failure" expect 1 top nccl --once
ok "with its file and what to do" says 'NCCL_P2P_DISABLE=1 .*mine.conf *hurts  *NCCL_P2P_DISABLE=1 disables NVLink and PCIe peer access: unset it' out
ok "the environment has its way" says 'NCCL_DEBUG=WARN *environment *ok' out
ok "the other is not used" says 'NCCL_DEBUG=TRACE .*unused  *not used: environment overrides it' out
ok "a slip is told with the nearest name" says 'NCCL_SOCKET_NTHREDS=4 .*unknown .*did you mean NCCL_SOCKET_NTHREADS' out
ok "as JSON too" expect 1 top nccl --once --json
ok "in one line" [ "$(wc -l < out)" = 1 ]
ok "with the verdict" says '"name":"NCCL_P2P_DISABLE","value":"1","from":"[^"]*mine.conf","verdict":"hurts"' out
NCCL_ALGO=$(printf 'a\033[31mb') "$assay" top nccl --once > out 2> err
ok "no value steers the terminal" sh -c '! grep -q "$(printf "\033")" out'
NCCL_IB_TC=106 sleep 60 &
other=$!
while ! tr '\0' '\n' < /proc/$other/environ | grep -q NCCL_IB_TC; do sleep 0.02; done
ok "another process of ours is looked into" expect 1 top nccl --once --pid $other
ok "its own variable shows" says 'NCCL_IB_TC=106 *environment *ok' out
kill $other
wait $other 2> /dev/null
ok "one that is gone is wrong usage" expect 64 top nccl --once --pid $other
ok "and said so" says 'no such process' err
ok "--pid is for settings" expect 64 top ib --once --pid $$
unset NCCL_DEBUG
NCCL_CONF_FILE=$tmp
ok "a folder for a file cannot be read" expect 2 top nccl --once
ok "which is told" says 'unreadable' out
NCCL_CONF_FILE=$tmp/none.conf
ok "the known names are listed" expect 0 list nccl
ok "with what they do" says '^NCCL_P2P_DISABLE  *nccl  *1 forbids NVLink' out

# NVLink: 1e6 KiB a second and link are 18.4 GB/s over 18 links
export FAKE_NVML_RATE=data_tx=1e6,raw_tx=1.0625e6,data_rx=5e5
ok "links show" expect 0 top nvlink --once --interval 500ms --json
rate() { grep -o "\"sum\":{[^}]*\"$1\":[0-9.e+]*" out | sed -n "${2}s/.*:\([0-9.e+]*\)\$/\1/p"; }
within() { awk -v found="$1" -v want="$2" 'BEGIN { d = found / want - 1; exit !(d < 0.03 && d > -0.03) }'; }
ok "the payload sent is within 3 % of what was" within "$(rate payload_tx 1)" 18.432e9
ok "and what came in" within "$(rate payload_rx 4)" 9.216e9
ok "the raw rate is told apart" within "$(rate raw_tx 2)" 19.584e9
expect 0 top nvlink --once --interval 100ms
ok "each link has its row" [ "$(grep -c ' up  *4.0  *switch .*26.562 GB/s' out)" = 72 ]
FAKE_NVML_RATE= FAKE_NVML_RET=data_tx=3,data_rx=3,raw_tx=3,raw_rx=3 "$assay" top nvlink --once --interval 100ms > out
ok "without counters the rates are not available" says '18 of 18 links up; rates not available: not supported' out
ok "and never zero" sh -c '! grep -q " 0 B/s" out'
FAKE_NVML_RATE=error_crc=1000 "$assay" top links --count 2 --interval 200ms > out
ok "errors that rise show" says ' 0  up .* ([+][1-9][0-9]*)$' out
ok "and in the line" says 'errors +[1-9]' out
FAKE_NVML_LOST=2; export FAKE_NVML_LOST
ok "a lost GPU is inconclusive" expect 2 top nvlink --once --interval 100ms
ok "it is told" says '^  GPU 2 .*unreadable: GPU is lost' out
ok "the others are shown" [ "$(grep -c '18 of 18 links up; payload' out)" = 3 ]
unset FAKE_NVML_LOST
ok "no driver, no GPU: nothing to see" env FAKE_NVML_INIT=9 ASSAY_LIB_NVML=/nowhere "$assay" top nvlink --once
ok "a driver that is not loaded is told" sh -c '! FAKE_NVML_INIT=9 "$1" top nvlink --once > out; grep -q "unreadable\|no NVIDIA GPU" out' sh "$assay"
export FAKE_NVML_HANG=init ASSAY_FACTS_LIMIT_MS=5000 # of every helper: a busy machine makes those that do not hang late too
ok "a driver that hangs is inconclusive" expect 2 top links --once --interval 100ms
ok "it is told" says 'no answer for .*: the driver or the firmware is stuck' out
ok "the other parts are there" says 'no InfiniBand or RoCE port on this machine' out
FAKE_NVML_AFTER=3 FAKE_NVML_HANG=nvlink_state
export FAKE_NVML_AFTER
ok "so is one that hangs later" expect 2 top links --count 60 --interval 200ms
ok "what was seen before is told first" sh -c 'sed -n 1p out | grep -q "72 of 72 up"'
ok "the end says that it is stuck" says '^  NVLink  *unreadable: no answer' out
unset FAKE_NVML_HANG FAKE_NVML_AFTER ASSAY_FACTS_LIMIT_MS
FAKE_NVML_CRASH=nvlink_state "$assay" top nvlink --once > out 2> err
ok "a driver that crashes costs its helper" says 'the helper nvlink ended with ' out

# Ports
port=$tmp/sys/class/infiniband/mlx5_0/ports/1
mkdir -p "$port/counters" "$port/gids"
echo InfiniBand > "$port/link_layer" && echo '4: ACTIVE' > "$port/state" && echo '5: LinkUp' > "$port/phys_state"
echo '400 Gb/sec (4X NDR)' > "$port/rate" && echo 0x1f > "$port/lid"
echo fe80:0000:0000:0000:0000:0000:0000:0001 > "$port/gids/0"
echo 0 > "$port/counters/port_xmit_data" && echo 0 > "$port/counters/port_rcv_data" && echo 5 > "$port/counters/symbol_error"
ok "ports show" expect 0 top ib --once --interval 100ms
ok "with state, rate, LID and errors" \
	says '^  mlx5_0/1  infiniband  ACTIVE  LinkUp *400 Gb/sec (4X NDR) *31 *fe80:.*  0 B/s *0 B/s  *5$' out
ok "an HCA that is here is well" env NCCL_IB_HCA=mlx5_0:1 "$assay" top nccl --once
NCCL_SOCKET_IFNAME=nowhere9 "$assay" top nccl --once > out
ok "an interface that is not here fails" [ $? = 1 ]
ok "by its name" says 'hurts  *nowhere9 is missing' out
"$assay" top ib --interval 500ms --count 5 --json > grown &
watcher=$!
while [ ! -s grown ]; do sleep 0.02; done # both readings of the first line are taken
echo 250000000 > "$port/counters/port_xmit_data"
echo 8 > "$port/counters/symbol_error"
wait $watcher
most=$(grep -o '"tx":[0-9.e+]*' grown | cut -d : -f 2 | sort -g | tail -n 1)
ok "words of four bytes over the interval" awk -v tx="$most" 'BEGIN { exit !(tx > 0.55e9 && tx < 2.2e9) }'
ok "what rose is told" says '"risen":{"symbol_error":3}' grown
mkdir "$port/counters/link_downed"
ok "a counter that cannot be read is inconclusive" expect 2 top ib --once --interval 100ms
ok "with its file" says 'counters/link_downed: unreadable' out
rm -r "$tmp/sys/class/infiniband" && : > "$tmp/sys/class/infiniband"
ok "no folder where one should be is unreadable" expect 2 top ib --once
ok "and not the same as none" sh -c 'grep -q "unreadable" out && ! grep -q "no InfiniBand" out'
rm "$tmp/sys/class/infiniband"

# Again and again
ok "live without a terminal is a line each time" expect 0 top links --count 3 --interval 100ms
ok "three of them" [ "$(grep -c '^20.*Z; nccl 1 set, 0 hurt, 0 unknown; nvlink 4 GPUs, 72 of 72 up, out 7[0-9][.]' out)" = 3 ]
ok "and the last state" sh -c 'tail -n 2 out | grep -q "^InfiniBand and RoCE"'
ok "JSON is lines alone" expect 0 top links --count 3 --interval 100ms --json
ok "as many as asked for" [ "$(grep -c '^{"t":"20.*}$' out)-$(wc -l < out)" = 3-3 ]
: > out # the lines of before are none of its
"$assay" top links --interval 100ms > out 2> err &
watcher=$!
while [ "$(wc -l < out)" -lt 2 ]; do sleep 0.05; done
kill -INT $watcher
wait $watcher
ok "an interrupt is a good end" [ $? = 0 ]
ok "with the last state" says '^  GPU 3 0000:90:00.0  18 of 18 links up' out
if command -v script > /dev/null 2>&1; then
	script -qec "stty cols 60 rows 8; '$assay' top links --count 3 --interval 100ms" typed > /dev/null 2>&1 < /dev/null
	ok "a terminal gets a screen" says 'assay top links' typed
	ok "on the other screen, and back" sh -c 'grep -q "\[?1049h" typed && grep -q "\[?1049l" typed'
	ok "and then the last state" says 'InfiniBand and RoCE' typed
fi
"$assay" top links --interval 100ms 2> err | head -n 1 > out
ok "a reader that leaves ends it" [ "$(wc -l < out)" = 1 ]

# Recordings
ok "a recorded machine shows its links" expect 0 top nvlink --machine "$root/tests/replay/derived-h100-sxm-8"
ok "without rates" says 'rates not available: a recording has only one reading' out
ok "a link that is down fails" expect 1 top nvlink --machine "$root/tests/replay/derived-nvlink-down"
ok "its settings too" expect 1 top nccl --machine "$root/tests/replay/derived-nccl-env"
ok "live is for what lives" expect 64 top links --count 2 --machine "$root/tests/replay/h100-sxm-1"
ok "so is --count" expect 64 top nvlink --count 2 --machine "$root/tests/replay/h100-sxm-1"
ok "no part of that name" expect 64 top pcie
ok "nobody is left behind" none_left
of_guest="$root/results/2026-11-22-h200-sxm-x2/recording" # a guest is not told its switches' addresses
ok "a switch without an address has none made up" sh -c '"$0" top nvlink --machine "$1" > out && grep -q " switch" out && ! grep -qi ffffffff out' "$assay" "$of_guest"
ok "nor in the inventory" sh -c '"$0" info links --machine "$1" > out && grep -q "link and direction, to switches" out && ! grep -qi ffffffff out' "$assay" "$of_guest"
# Launched: what each node shows, once.
ok "launched ranks of two nodes show each node once" eval 'for r in 0 1 2 3; do
	ASSAY_RANK=$r ASSAY_SIZE=4 ASSAY_LOCAL_RANK=$((r % 2)) ASSAY_LOCAL_SIZE=2 ASSAY_HOST=127.0.0.1 SLURMD_NODENAME=n$((r / 2)) "$assay" top nccl --once || exit 1
done > out && [ "$(grep "^node" out | tr "\n" " ")" = "node n0 node n1 " ]'
finish

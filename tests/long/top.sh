#!/bin/bash
# What assay top costs with eight fake GPUs: its own CPU time and the readers' at one refresh per second, bytes per second over ssh, and
# its memory over thousands of refreshes. Other work on the machine does not change CPU time much. It prints each figure.
# usage: top.sh ASSAY NVML-FAKE ROOT [SECONDS]
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3") seconds=${4:-60} here=$(realpath "$3")/tests/end2end
. "$here/tap.sh"
scratch
. "$here/tmux.sh"
. "$here/sshd.sh"
trap 'term kill-server 2> /dev/null; sshd_end; rm -rf "$tmp"' EXIT
export ASSAY_LIB_NVML="$nvml" FAKE_NVML_FILE="$root/tests/fake/h100x4.json" FAKE_NVML_COUNT=8
ticks=$(getconf CLK_TCK)
own() { pgrep -f "^$assay top $1" | head -n 1; } # the process of a command line
cpu_of() { awk -v hz="$ticks" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/$1/stat"; }
readers_of() { pgrep -g 0,"$1" > /dev/null 2>&1; pgrep -f "^$assay __watch"; }
resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
at_most() { awk -v value="$1" -v most="$2" 'BEGIN { exit !(value <= most) }'; }

# CPU time
terminal 160 50
types "'$assay' top --interval 1s"
until_shown '^7 .*%' || { shown; echo "1..1"; echo "not ok 1 - eight GPUs on the screen"; exit 1; }
pid=$(own '--interval 1s')
before=$(cpu_of "$pid") readers_before=$(for p in $(readers_of "$pid"); do cpu_of "$p"; done | awk '{ s += $1 } END { print s }')
sleep "$seconds"
after=$(cpu_of "$pid") readers_after=$(for p in $(readers_of "$pid"); do cpu_of "$p"; done | awk '{ s += $1 } END { print s }')
keys q
share=$(awk -v a="$before" -v b="$after" -v s="$seconds" 'BEGIN { printf "%.3f", 100 * (b - a) / s }')
readers=$(awk -v a="$readers_before" -v b="$readers_after" -v s="$seconds" 'BEGIN { printf "%.3f", 100 * (b - a) / s }')
echo "# screen: $share % of a core at one refresh per second, readers: $readers % (driver calls of the fake included)"
ok "screen and readers take at most 1 % of a core" at_most "$(awk -v a="$share" -v b="$readers" 'BEGIN { print a + b }')" 1

# Bytes over ssh, as sshd counts them
host gpu1 127.0.0.1 user host
sshd_begin
printf '#!/bin/sh\nASSAY_LIB_NVML=%s FAKE_NVML_FILE=%s FAKE_NVML_COUNT=8 exec "%s" "$@"\n' "$nvml" "$FAKE_NVML_FILE" "$assay" > remote && chmod +x remote
"$assay" top --ssh-config "$tmp/ssh_config" --program "$tmp/remote" --hosts gpu1 --interval 1s --count "$seconds" > lines 2> err
for _ in $(seq 100); do grep -q 'Transferred: sent' sshd.log && break; sleep 0.1; done
sent=$(sed -n 's/.*Transferred: sent \([0-9]*\), received.*/\1/p' sshd.log | head -n 1)
echo "# over ssh: $((${sent:-0} / seconds)) B/s in $seconds s, the first whole state included"
ok "sshd tells what it sent" [ -n "$sent" ]
ok "at most 2 KB/s" [ "$((${sent:-999999999} / seconds))" -le 2000 ]

# Memory: histories are full after 600 readings
terminal 160 50
types "'$assay' top --interval 50ms"
until_shown '^7 .*%'
pid=$(own '--interval 50ms')
sleep 60
early=$(resident_kib "$pid")
sleep "$seconds"
late=$(resident_kib "$pid")
echo "# resident: $early KiB after 60 s of 20 refreshes per second, $late KiB $seconds s later"
ok "memory stays flat" [ $((late - early)) -le 512 ]
keys q
finish

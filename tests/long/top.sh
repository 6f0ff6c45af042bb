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
export ASSAY_LIB_NVML="$nvml" FAKE_NVML_FILE="$root/tests/replay/derived-h100-sxm-8/nvml.json"
export TOP_TEST="$tmp"
ticks=$(getconf CLK_TCK)
ours() { # WORDS: processes of this test whose command line has them
	pgrep -f "$1" | while read -r p; do tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null | grep -qx "TOP_TEST=$tmp" && echo "$p"; done
}
cpu_of() { # PID..: seconds of CPU time of all of them
	for p; do sed 's/.*) //' "/proc/$p/stat"; done | awk -v hz="$ticks" '{ sum += $12 + $13 } END { printf "%.3f", sum / hz }'
}
share() { awk -v a="$1" -v b="$2" -v s="$seconds" 'BEGIN { printf "%.3f", 100 * (b - a) / s }'; } # percent of a core
resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# CPU time
terminal 160 50
types "'$assay' top --interval 1s"
until_shown '^7 .*%' || { echo "1..1"; echo "not ok 1 - eight GPUs on the screen"; exit 1; }
screen=$(ours "^$assay top --interval 1s") readers=$(ours "^[^ ]* *__watch")
before=$(cpu_of $screen) readers_before=$(cpu_of $readers)
sleep "$seconds"
screen_share=$(share "$before" "$(cpu_of $screen)") readers_share=$(share "$readers_before" "$(cpu_of $readers)")
keys q
echo "# of one core at one refresh per second: screen $screen_share %, readers $readers_share % (with the calls of the fake driver)"
ok "the screen takes at most 1 % of a core" awk -v a="$screen_share" 'BEGIN { exit !(a <= 1) }'
ok "so do screen and readers together" awk -v a="$screen_share" -v b="$readers_share" 'BEGIN { exit !(a + b <= 1) }'

# Bytes over ssh, as the kernel counts them
host gpu1 127.0.0.1 user host
sshd_begin
printf '#!/bin/sh\nASSAY_LIB_NVML=%s FAKE_NVML_FILE=%s exec "%s" "$@"\n' "$nvml" "$FAKE_NVML_FILE" "$assay" > remote && chmod +x remote
command -v ss > /dev/null || lacks "ss is not installed (package iproute2)"
received() { ss -tinH "dport = :$port" | grep -o 'bytes_received:[0-9]*' | cut -d : -f 2 | sort -n | tail -n 1; }
"$assay" top --ssh-config "$tmp/ssh_config" --program "$tmp/remote" --hosts gpu1 --interval 1s --count $((seconds + 60)) > lines 2> err &
pid=$!
for _ in $(seq 200); do grep -q '8 GPUs, util' lines && break; sleep 0.1; done
begun=$(received)
sleep "$seconds"
grown=$(($(received) - begun))
kill $pid
wait $pid
echo "# over ssh: $begun B for the login and the first state, then $((grown / seconds)) B/s"
ok "eight GPUs were read" [ "$(grep -c '8 GPUs, util' lines)" -ge $((seconds / 2)) ]
ok "at most 2 KB/s" [ $((grown / seconds)) -le 2000 ]

# Memory: histories are full after 600 readings
terminal 160 50
types "'$assay' top --interval 50ms"
until_shown '^7 .*%'
screen=$(ours "^$assay top --interval 50ms")
sleep 60
early=$(resident_kib $screen)
sleep "$seconds"
late=$(resident_kib $screen)
echo "# resident: $early KiB after 60 s of 20 refreshes per second, $late KiB $seconds s later"
ok "memory stays flat" [ $((late - early)) -le 512 ]
keys q
finish

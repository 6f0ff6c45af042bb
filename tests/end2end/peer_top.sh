#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The comparison of GPU monitors sees a screen as nvtop draws it, whose degree sign is one of the line-drawing characters, measures the
# CPU time of what works, and says why a program without a screen is absent. usage: peer_top.sh ROOT
set -u
root=$(realpath "$1")
. "$root/tests/end2end/tap.sh"
command -v python3 > /dev/null || { echo "1..0 # SKIP there is no python3"; exit 0; }
scratch
cat > screen << 'END'
#!/bin/sh
printf '\033[?1049h\033[H\033[2J\033[36mTEMP\033[32m  30\033[39m\033(0\033[0mf\033(BC \033[36mPOW\033[39m  69 / 700 W'
while :; do :; done
END
chmod +x screen
ok "the screens are measured" eval 'python3 "$root/tests/oracles/peer_top.py" --seconds 3 --rounds 1 nvtop=./screen "none=echo no GPU here" > out 2> err'
figure() { sed -n "s/^  \"$1\": \([0-9.e+-]*\),\{0,1\}$/\1/p" out; }
ok "nvtop's is recognised" awk -v first="$(figure first_s)" 'BEGIN { exit !(first > 0) }'
ok "its CPU time is measured" awk -v cpu="$(figure cpu_s_per_s)" 'BEGIN { exit !(cpu > 0) }'
ok "no driver is open, so all of it is its own" [ "$(figure driver_s_per_s)-$(figure own_s_per_s)" = "0.0-$(figure cpu_s_per_s)" ]
ok "a program without a screen is absent, with its words" says '"absent": "no GPU here"' out
finish

#!/bin/sh
# Teams over networks that are bad or odd, between hosts that are network and UTS namespaces of our own: many hosts, a cut
# cable, long ways, lost and slow bytes, IPv6, interfaces, and who is refused. usage: team_net.sh ASSAY RELAY
set -u
assay=$(realpath "$1") relay=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")
. "$here/tap.sh"

command -v ip > /dev/null || lacks "ip is not installed (package iproute2)"
if [ "${3:-}" != inside ]; then
	why=$(unshare -Urnu sh -c 'hostname x && ip link add name hub type bridge && ip link add va type veth peer name vb' 2>&1) || {
		lacks "namespaces of our own are not permitted here: $why"
	}
	tmp=$(mktemp -d) || exit 1
	trap 'rm -rf "$tmp"' EXIT
	cd "$tmp" || exit 1
	unshare -Urnu "$script" "$assay" "$relay" inside
	exit
fi

now() { date +%s%N; }
milliseconds() { echo $((($(now) - $1) / 1000000)); }
comes() { # COMMAND..: true, sooner or later; ten minutes are for a machine that is busy
	for _ in $(seq 6000); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}
HOSTS=8
at() { # HOST COMMAND..: on host 0 (us) or another
	h=$1
	shift
	if [ "$h" = 0 ]; then "$@"; else nsenter -t "$(cat "host.$h")" -n -u "$@"; fi
}
# A bridge on host 0 (node-0, 10.9.8.1, fd00:9::1) and a cable to each other (node-H, 10.9.8.1+H).
build_hosts() {
	hostname node-0 && ip link set lo up && ip link add name hub type bridge && ip addr add 10.9.8.1/24 dev hub &&
		ip -6 addr add fd00:9::1/64 dev hub nodad && ip link set hub up || return 1
	for h in $(seq $((HOSTS - 1))); do
		unshare -n -u sh -c "hostname node-$h; exec sleep 900" &
		echo $! > "host.$h"
	done
	for h in $(seq $((HOSTS - 1))); do
		comes sh -c "[ \"\$(nsenter -t $(cat "host.$h") -u hostname)\" = node-$h ]" || return 1
		ip link add "v$h" type veth peer name "w$h" && ip link set "w$h" netns "$(cat "host.$h")" && ip link set "v$h" master hub &&
			ip link set "v$h" up && at "$h" ip link set lo up && at "$h" ip addr add "10.9.8.$((1 + h))/24" dev "w$h" &&
			at "$h" ip -6 addr add "fd00:9::$((1 + h))/64" dev "w$h" nodad && at "$h" ip link set "w$h" up || return 1
	done
}
rank() { # HOST R SIZE ARGS..: in the background
	on=$1 r=$2 size=$3
	shift 3
	( at "$on" "$assay" __team --rank "$r" --size "$size" "$@" > "out.$r" 2> "err.$r"; echo $? > "code.$r" ) &
}
ranks() { # HOST_OF_ALL_BUT_0 SIZE ARGS..: rank 0 on host 0
	other=$1 size=$2
	shift 2
	for r in $(seq 0 $((size - 1))); do rank "$([ "$r" = 0 ] && echo 0 || echo "$other")" "$r" "$size" "$@"; done
}
forget() { rm -f out.* err.* pid.* code.*; }
ended() { # SIZE: all have
	for r in $(seq 0 $(($1 - 1))); do [ -s "code.$r" ] || return 1; done
}
all() { # SIZE CODE PATTERN: each rank ended so and says so
	comes ended "$1" || return 1
	bad=0
	for r in $(seq 0 $(($1 - 1))); do
		[ "$(cat "code.$r")" = "$2" ] && grep -q -- "$3" "out.$r" && continue
		echo "rank $r: exit code $(cat "code.$r"), $(cat "out.$r" "err.$r")"
		bad=1
	done
	return $bad
}
begun() {
	for r in $(seq 0 $(($1 - 1))); do grep -q 'case 1 begins' "err.$r" || return 1; done
}
joined() { sed -n 's/.*"join_ms":\([0-9]*\).*/\1/p' "out.${1:-0}"; }
through() { # FAULT [N]: a relay on host 1 to rank 0's port
	nsenter -t "$(cat host.1)" -n -u "$relay" 29611 10.9.8.1 29611 "$@" > relay.out 2>&1 & # its id is the relay's own
	relayed=$!
	comes grep -q ready relay.out
}
stop_relay() {
	kill $relayed
	wait $relayed 2> /dev/null
}
value() { sed -n "s/.*\"name\":\"$1\".*\"$2\":{\"offset_ns\":\(-*[0-9]*\),\"error_ns\":\([0-9]*\)}.*/\1 \2/p" out.0; }

ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET
trap 'for h in $(seq $((HOSTS - 1))); do kill "$(cat "host.$h")" 2> /dev/null; done' EXIT
build_hosts > build.out 2>&1 || {
	lacks "hosts of our own do not come up: $(tr '\n' ' ' < build.out)"
}

# 64 ranks on eight hosts. How long it takes is told; how fast this machine is decides nothing.
since=$(now)
for r in $(seq 0 63); do rank $((r % HOSTS)) "$r" 64 --master 10.9.8.1; done
ok "64 ranks on eight hosts meet, agree and part" all 64 0 '"ending":"done"'
echo "# 64 ranks on eight hosts: $(joined) ms until all had joined, as rank 0 saw it; $(milliseconds "$since") ms for the whole"
ok "each host is a node" sh -c '[ "$(grep -o "\"name\":\"node-[0-7]\"" out.5 | sort -u | wc -l)" = 8 ]'
forget

# A cable that is cut in a case, and that cut before anybody has met.
set -- --silence 1500ms --time 60s --limit 90s --master 10.9.8.1
for r in 0 1 2 3; do rank $((r / 2)) $r 4 "$@"; done
ok "a case is under way on two hosts" comes begun 4
ip link set v1 down
ok "a cut cable: all end" comes ended 4
for r in 0 1; do ok ".. rank $r names who is gone" grep -q 'team_lost.*lost rank [23] on node-1' out.$r; done
for r in 2 3; do ok ".. rank $r names who is gone" grep -q 'team_lost.*lost rank 0 on node-0' out.$r; done
ok ".. and none waits for the case's own end" sh -c '! grep -l "\"ending\":\"done\"" out.*'
ok ".. and all fail" sh -c '[ "$(sort -u code.*)" = 2 ]'
forget
ranks 1 3 --master 10.9.8.1 --join 3s
ok "no way to rank 0: all end" comes ended 3
ok ".. rank 0 names who did not come" grep -q 'team_late.*2 of 3 ranks did not join within 3.0 s: rank 1, 2' out.0
for r in 1 2; do ok ".. rank $r says where it looked" grep -q "rank $r did not reach rank 0 within 3.0 s: 10.9.8.1, port" out.$r; done
ok ".. and all fail" sh -c '[ "$(sort -u code.*)" = 2 ]'
ip link set v1 up
forget

# Long and bad ways, by a relay on host 1.
through delay 200
rank 0 0 4 --master 10.9.8.1
for r in 1 2 3; do rank 1 $r 4 --master 127.0.0.1; done
ok "200 ms each way: they meet, agree and part" all 4 0 '"ending":"done"'
echo "# 200 ms each way: $(joined) ms until all had joined"
set -- $(value node-1 joined)
ok ".. the clock of the other host is told to be wrong by what the way took (${1:-?} ± ${2:-?} ns)" [ "${2:-0}" -ge 190000000 ]
ok ".. and is not wrong by more: both have one clock" [ "${1#-}" -le "$2" ]
stop_relay
forget
for byte in 0 20 700; do
	through drop $byte
	rank 0 0 3 --master 10.9.8.1 --join 5s --limit 4s --silence 4s
	for r in 1 2; do rank 1 $r 3 --master 127.0.0.1 --join 5s --limit 4s --silence 4s; done
	ok "byte $byte lost: all end with a sentence" all 3 2 '"error":"team_[a-z]*","text":"[^"]'
	stop_relay
	forget
done
through drip 1000
rank 0 0 2 --master 10.9.8.1 --join 7s
rank 1 1 2 --master 127.0.0.1 --join 7s
ok "a byte a second: nobody waits longer than told" all 2 2 '"error":"team_late"'
ok ".. rank 0 names who is late" grep -q '1 of 2 ranks did not join within 7.0 s: rank 1' out.0
forget
# The same beside a team whose way is good: one of another team, whose greeting drips.
( ASSAY_TEAM_SECRET=another-secret-of-somebody at 1 "$assay" __team --rank 1 --size 3 --master 127.0.0.1 --join 10s > slow.out 2>&1 ) &
rank 0 0 3 --master 10.9.8.1 --time 2s
for r in 1 2; do rank 2 $r 3 --master 10.9.8.1 --time 2s; done
ok "beside a slow stranger a team meets all the same" all 3 0 '"ending":"done"'
ok ".. before the stranger is given up ($(joined) ms)" [ "$(joined)" -le 10000 ]
stop_relay
forget

# Families and interfaces.
ranks 3 3 --master '[fd00:9::1]:29650'
ok "IPv6: they meet" all 3 0 '"host":"\[fd00:9::4'
forget
rank 0 0 3 --master 10.9.8.1 --interface hub
rank 1 1 3 --master 10.9.8.1 --interface w1
rank 2 2 3 --master 10.9.8.1 --interface 10.9.8.3
ok "by the interface told, by name and by address" all 3 0 '"ending":"done"'
forget
rank 0 0 2 --master 10.9.8.1 --interface lo --join 2s
rank 1 1 2 --master 10.9.8.1 --join 2s
ok "rank 0 at another interface is not found: all fail" all 2 2 'team_late'
ok ".. and refuses" grep -q 'Connection refused' out.1
forget
rank 0 0 2 --master 10.9.8.1 --join 2s
rank 1 1 2 --master 10.9.8.1 --interface nothing0 --join 2s
ok "an interface that is not there: all fail" all 2 2 'team_late'
ok ".. by its name" grep -q 'from nothing0' out.1
forget

# Hosts that are not there, or not open.
rank 0 0 2 --master 10.9.8.1 --join 4s
rank 1 1 2 --master 10.9.8.77 --join 4s
ok "a host that is not there: all fail" all 2 2 'team_late'
ok ".. and it is named" grep -q 'did not reach rank 0 within 4.0 s: 10.9.8.77, port' out.1
forget
rank 0 0 2 --master 10.9.8.1 --join 2s
rank 1 1 2 --master 10.9.8.1:31000 --join 2s
ok "another port: all fail" all 2 2 'team_late'
ok ".. and what was tried is named" grep -q '10.9.8.1, port 310.*Connection refused' out.1
forget
rank 0 0 2 --master 10.9.8.1 --join 2s
rank 1 1 2 --master no-such-host.invalid --join 2s
ok "a name that nobody knows: all fail" all 2 2 'team_late'
ok ".. and it is named" grep -q 'no-such-host.invalid' out.1
forget

# Who is refused, hosts apart: everybody hears why.
ASSAY_TEAM_SECRET=another-secret-of-somebody rank 1 1 2 --master 10.9.8.1 --join 3s
rank 0 0 2 --master 10.9.8.1 --join 3s
ok "another secret: all fail" all 2 2 'another secret'
forget
for r in 0 1 2; do rank $r $r 3 --master 10.9.8.1 --build $((r == 1)); done
ok "another build: all fail, by name" all 3 2 'version_mismatch.*rank 1 on node-1 runs assay .* build 1, and rank 0 on node-0'
forget
rank 0 0 3 --master 10.9.8.1
rank 1 1 3 --master 10.9.8.1
( at 2 "$assay" __team --rank 1 --size 3 --master 10.9.8.1 > out.2 2> err.2; echo $? > code.2 ) &
ok "a rank twice: all fail, by both addresses" all 3 2 'two processes claim to be rank 1 on node-[12]: 10.9.8.[23].*10.9.8.[23]'
forget
"$relay" 29611 10.9.8.1 9 plain > busy.out 2>&1 &
busy=$!
comes grep -q ready busy.out
ranks 2 2 --master 10.9.8.1
ok "a port that another has: they meet at the next" all 2 0 '"ending":"done"'
kill $busy
wait $busy 2> /dev/null
finish

#!/bin/sh
# assay top over real ssh: an sshd with its own keys, configuration and known hosts in a scratch folder, on two addresses of this
# machine. Hosts that are unknown, refuse, do not answer, or die. usage: top_hosts.sh ASSAY NVML-FAKE ROOT
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
. "$here/tap.sh"
. "$here/walk.sh"
scratch
trap 'sshd_end; rm -rf "$tmp"' EXIT
. "$here/sshd.sh"
comes() { # COMMAND..: true within 20 s
	for _ in $(seq 200); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}
host gpu1 127.0.0.1 user host
host gpu2 127.0.0.2 user host
host unknown 127.0.0.1 user other
host new 127.0.0.1 user host
sed -i '/^new /d' known_hosts # nobody has connected to it
host refused 127.0.0.1 stranger host
host closed 127.0.0.1 user host
printf 'Host closed\n\tPort 1\n' | cat - ssh_config > with_closed && mv with_closed ssh_config
sshd_begin
# The hosts' assay: with the fake GPUs, which ssh does not pass on. The lines of gpu2 wait while the file hold exists.
mkdir remote bin
cat > remote/assay << SCRIPT
#!/bin/sh
export ASSAY_LIB_NVML=$nvml FAKE_NVML_FILE=$root/tests/fake/h100x4.json TOP_HOSTS=$tmp
case \$SSH_CONNECTION in *127.0.0.2*) ;; *) exec "$assay" "\$@" ;; esac
[ -e "$tmp/hold" ] || [ -e "$tmp/slow" ] || exec "$assay" "\$@"
"$assay" "\$@" | while IFS= read -r line; do
	while [ -e "$tmp/hold" ]; do sleep 0.1; done
	printf '%s\n' "\$line" || exit
done
SCRIPT
printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$(command -v ssh)" "$tmp/ssh_config" > bin/ssh
printf '#!/bin/sh\nexec "%s" "$@" --program "%s"\n' "$assay" "$tmp/remote/assay" > bin/assay
chmod +x remote/assay bin/ssh bin/assay
readers() { pgrep -f "assay __watch" | while read -r p; do tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null | grep -q "^TOP_HOSTS=$tmp" && echo "$p"; done; }
none_left() { [ -z "$(readers)" ]; }
top() { # CODE ARGS..
	code=$1
	shift
	expect "$code" top --ssh-config "$tmp/ssh_config" --program "$tmp/remote/assay" "$@"
}

ok "two hosts show" top 0 --hosts gpu1,gpu2 --once
ok "a line each" [ "$(grep -c '^gpu[12]  *4 .*/3[12][0-9]G' out)" = 2 ]
ok "nothing is left running there" comes none_left
printf '# the rack\ngpu1\ngpu2   # lower\n' > hosts
ok "so they do from a file" top 0 --hosts-file hosts --once --json
ok "as an object each" [ "$(grep -c '^{"node":"gpu[12]"' out)" = 2 ]
COLUMNS=200
export COLUMNS
ok "a host that nobody knows" top 2 --hosts gpu1,no-such-host.invalid --once
ok "is told, and the other is shown" sh -c 'grep -q "^gpu1  *4 " out && grep -q "^no-such-host.*\(not known\|resolve\)" out'
top 2 --hosts gpu1,unknown,new,refused,closed --once
ok "a host whose key is another is refused" says '^unknown .*Host key for unknown has changed' out
ok "a host that is not in known_hosts is refused" says '^new .*No .* host key is known for new' out
ok "and stays unknown" sh -c '! grep -q "^new " known_hosts'
ok "the others are shown beside them" says '^gpu1  *4 ' out
ok "one that refuses our key is told" says '^refused .*Permission denied' out
ok "one that does not answer is told" says '^closed .*Connection refused' out
ok "a name that is none is wrong usage" top 64 --hosts 'gpu1;id' --once
ok "a program that is not there is told" expect 2 top --ssh-config "$tmp/ssh_config" --program /nowhere/assay --hosts gpu1 --once

# A host behind another one, and a key that only an agent has.
for jump in gpu2 closed; do printf 'Host behind-%s\n\tHostName 127.0.0.1\n\tHostKeyAlias gpu1\n\tProxyJump %s\n\tIdentityAgent %s\n\tIdentitiesOnly no\n' $jump $jump "$tmp/agent"; done |
	cat - ssh_config > with_jumps && mv with_jumps ssh_config
eval "$(ssh-agent -a "$tmp/agent")" > /dev/null
agent=$SSH_AGENT_PID
unset SSH_AUTH_SOCK SSH_AGENT_PID
trap 'kill "$agent" 2> /dev/null; sshd_end; rm -rf "$tmp"' EXIT
ok "a host behind a jump host refuses an agent without keys" eval 'top 2 --hosts gpu1,behind-gpu2 --once; says "^behind-gpu2 .*Permission denied" out'
SSH_AUTH_SOCK=$tmp/agent ssh-add -q user 2> err
ok "with the key in the agent it is shown" eval 'top 0 --hosts gpu1,behind-gpu2 --once && says "^behind-gpu2  *4 " out'
ok "one whose jump host does not answer is not" eval 'top 2 --hosts gpu1,behind-closed --once; says "^behind-closed .*\(Connection refused\|closed\)" out && says "^gpu1  *4 " out'
kill "$agent"
PATH=$tmp/bin:$PATH
commands tutorial/watch-a-node-then-a-fleet.md > walk
ok "the tutorial has commands for this test" [ -s walk ]
while read -r line; do
	ok "tutorial: ${line%%  *}" sh -c "$line" < /dev/null
done < walk
"$assay" top --ssh-config "$tmp/ssh_config" --program "$tmp/remote/assay" --hosts gpu1,gpu2 --interval 200ms > lines 2> err &
pid=$!
comes sh -c '[ "$(grep -c "gpu2: 4 GPUs, util" lines)" -ge 2 ]'
# shellcheck disable=SC2046
kill -KILL $(readers | head -n 1)
ok "a host that dies is told, and the others go on" comes grep -q 'ended with' lines
kill -INT $pid
wait $pid
ok "an interrupt is a good end" [ $? = 0 ]
ok "and leaves nothing there" comes none_left

# A slow host: its lines do not arrive until hold goes. The other host's rows come meanwhile.
: > hold
: > slow
"$assay" top --ssh-config "$tmp/ssh_config" --program "$tmp/remote/assay" --hosts gpu1,gpu2 --interval 200ms > lines 2> err &
pid=$!
of() { grep -c "$1: 4 GPUs, util" lines; }
more() { [ "$(of "$1")" -ge "$2" ]; }
ok "beside a slow host, the rows of the other one come" comes more gpu1 5
ok "and none of the slow one" [ "$(of gpu2)" = 0 ]
ok "which says that it waits" says 'gpu2: waiting for the first reading' lines
ok "and is not taken for dead" sh -c '! grep -q "ended with" lines'
rm hold
ok "it shows as soon as its lines arrive" comes more gpu2 2
: > hold
before=$(of gpu1)
ok "when it is slow again, the other one goes on" comes more gpu1 $((before + 5))
rm hold
kill -INT $pid
wait $pid
ok "and the end is a good one" [ $? = 0 ]
rm slow
ok "which leaves nothing there" comes none_left
finish

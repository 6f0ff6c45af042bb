#!/bin/sh
# assay deploy on three hosts with real sshd: network, mount and UTS namespaces, each with a home folder of its own, and a veth to this
# machine. The bundle is made of what is built. usage: deploy.sh ASSAY SOURCE BUILD VERSION
set -u
assay=$(realpath "$1") source=$(realpath "$2") build=$(realpath "$3") version=$4 here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")
PATH=$PATH:/usr/sbin:/sbin
. "$here/tap.sh"
. "$here/ports.sh"
. "$here/ssh_hosts.sh"
. "$here/walk.sh"
if objdump -T "$build/src/assay" 2> /dev/null | grep -q __asan_init; then
	echo "1..0 # SKIP a sanitizer build is not bundled"
	exit 0
fi
ssh_is_here
command -v zstd > /dev/null || lacks "zstd is not installed"
if [ "${5:-}" != inside ]; then
	if [ "$(id -u)" != 0 ] || ! unshare -m -n -u sh -c 'hostname x && mount -t tmpfs none /run' 2> /dev/null; then
		lacks "network namespaces need root"
	fi
	exec unshare -m -n -u "$script" "$assay" "$source" "$build" "$version" inside
fi

tmp=$(mktemp -d) || exit 1
pids=
# An sshd leaves its parent, so it is found by its configuration's place.
trap 'kill $pids 2> /dev/null; pkill -f "sshd -f $tmp/"; wait 2> /dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
ports
ssh_keys
home=$(getent passwd "$(id -u)" | cut -d: -f6)

# Three hosts. A home is a file system of its own, so that it can be full.
ns1='' ns2='' ns3=''
ns() { eval "echo \$ns$1"; }
on() { # N COMMAND..: in host N
	at=$(ns "$1")
	shift
	nsenter -t "$at" -m -n -u -- "$@"
}
mount -t tmpfs none /run
mkdir -p /run/sshd tools
{
	echo '127.0.0.1 localhost'
	for i in 1 2 3; do echo "10.9.8.$((4 * i + 2)) gpu$i"; done
} > names
mount --bind names /etc/hosts
hostname desk
ip link set lo up
host() { # N: its namespaces and its link
	unshare -m -n -u sh -c "hostname gpu$1; mount -t tmpfs -o size=400m none '$home'; exec sleep 1000" &
	eval "ns$1=$!"
	pids="$pids $!"
	comes sh -c "[ \"\$(nsenter -t $(ns "$1") -u hostname)\" = gpu$1 ] && nsenter -t $(ns "$1") -m findmnt '$home'"
	ip link add "va$1" type veth peer name eth0 netns "$(ns "$1")"
	ip addr add "10.9.8.$((4 * $1 + 1))/30" dev "va$1" && ip link set "va$1" up
	on "$1" sh -c "ip addr add 10.9.8.$((4 * $1 + 2))/30 dev eth0 && ip link set eth0 up && ip link set lo up"
}
for i in 1 2 3; do host $i || lacks "host $i does not start"; done
serve() { # N: its sshd
	on "$1" "$sshd" -f "$tmp/sshd.gpu$1" -E "$tmp/sshd.gpu$1.log"
}
for i in 1 2 3; do
	server "gpu$i" "10.9.8.$((4 * i + 2))" host
	client "gpu$i" "10.9.8.$((4 * i + 2))" user
done
# The third host has only what docs/explanation/design/deploy.md lists, and `sh`: no tar, gzip, setsid, find or awk.
for tool in sh cat dd df head kill ln mkdir mv rm rmdir sha256sum sleep tail uname wc chmod; do
	at=$(command -v $tool) && case $at in /*) ln -s "$at" tools/ ;; *) ln -s /bin/$tool tools/ ;; esac
done
echo "SetEnv PATH=$tmp/tools" >> sshd.gpu3
for i in 1 2 3; do serve $i || lacks "sshd does not start here: $(tail -n 1 "sshd.gpu$i.log")"; done
client stranger 10.9.8.6 stranger
client changed 10.9.8.6 user
client unknown 10.9.8.6 user
client nowhere 10.9.8.6 user
cat >> ssh_config << CONFIG
Host nowhere
	Port 1
Host *
	Port $port
	User $(id -un)
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile $tmp/known_hosts
	GlobalKnownHostsFile /dev/null
CONFIG
for name in gpu1 gpu2 gpu3 stranger nowhere; do echo "$name $(cut -d ' ' -f 1,2 host.pub)"; done > known_hosts
echo "changed $(cut -d ' ' -f 1,2 other.pub)" >> known_hosts

ASSAY_BUNDLE_LEVEL=1 ASSAY_BUNDLE_GZIP=1 sh "$source/tools/bundle.sh" "$source" "$build" "$version" "$tmp/made" > made.log 2>&1
bundle=$(echo made/assay-"$version"-*/)
ok "there is a bundle" [ -x "$bundle/assay" ]
# ssh compresses each copy, which takes most of this test's CPU time. Modules with the libraries that they alone need are half of the bundle, and no
# command here loads one.
linked=$(ldd "$bundle/assay" | sed -n 's,.*/lib/\([^ ]*\) (.*,\1,p')
for object in "$bundle"/lib/*; do
	case " $(echo $linked) " in *" ${object##*/} "*) ;; *) rm "$object" ;; esac
done
small_suite
sed 's/target: team/target: cpu/' small.yaml > one.yaml
printf 'name: slow\ncases:\n  - {probe: limits}\n  - {probe: "null", target: cpu, phases: burst, require: nothing, seconds: 600s, limit: 700s, options: {time: 1ms}}\n' > slow.yaml
deploy() { # CODE ARGS..
	code=$1
	shift
	expect "$code" deploy --ssh-config ssh_config --bundle "$bundle" --patience 30s "$@" # a busy machine may leave a host without a CPU for seconds
}
dir_of() { sed -n 's/.*deploying to [0-9]* hosts*: //p' err | tail -n 1; }
cache=$home/.cache/assay
empty() { # N..: nothing of ours is left there
	for host; do
		on "$host" sh -c "[ ! -e '$cache/deploy' ]" || return 1
	done
}
state() { # HOST STATE: as deploy.json has it
	tr -d '\n' < "$dir/deploy.json" | grep -q "\"name\": \"$1\",[^}]*\"state\": \"$2\""
}
running_on() { on "$1" sh -c "ls '$cache'/deploy/runs/*/pid" > /dev/null 2>&1; }

# -- three hosts, one of which has no tar --
ok "three hosts" deploy 0 gpu1 'gpu[2-3]' --send one.yaml -- check --suite one.yaml
dir=$(dir_of)
head -n 4 out > head
ok ".. are clean" eval 'state gpu1 cleaned && state gpu2 cleaned && state gpu3 cleaned && empty 1 2 3'
ok ".. their runs are here, and whole" eval '[ "$(cat $dir/hosts/gpu[123]/work/assay-runs/*/journal.jsonl | grep -c "\"type\":\"close\",\"ending\":\"done\"")" = 3 ] && [ -s $dir/hosts/gpu3/out ]'
ok ".. as one report" eval '[ "$(cut -d, -f1 "$dir/results.csv" | sort -u | wc -l)" -ge 2 ] && [ -s "$dir/REPORT.md" ] && grep -q "REPORT.md" out'
ok ".. with a table and a comparison" eval 'grep -q "^gpu3 *cleaned *0 " "$dir/fleet.txt" && head -n 4 "$dir/fleet.txt" | cmp - "$tmp/head"'
ok ".. and no copy is left here" eval '[ -z "$(ls "$dir" | grep upload)" ]'
ok ".. nothing more is known of the hosts than their pseudonyms" eval '! grep -rq "gpu[123]" "$dir"/hosts/*/work/assay-runs/*/journal.jsonl'

# -- a host behind another one: only gpu1 has a link to it; and a key that only an agent has --
ip link add vj1 netns "$ns1" type veth peer name vj2 netns "$ns2"
for i in 1 2; do on $i sh -c "ip addr add 10.9.9.$i/30 dev vj$i && ip link set vj$i up"; done
server inner 10.9.9.2 host
on 2 "$sshd" -f "$tmp/sshd.inner" -E "$tmp/sshd.inner.log"
printf 'Host inner\n\tHostName 10.9.9.2\n\tProxyJump gpu1\n\tIdentityAgent %s\n\tIdentitiesOnly no\n' "$tmp/agent" | cat - ssh_config > with_jump && mv with_jump ssh_config
echo "inner $(cut -d ' ' -f 1,2 host.pub)" >> known_hosts
sed -i 's/^\tHostName 10.9.9.2$/&\n\tHostKeyAlias inner/' ssh_config
eval "$(ssh-agent -a "$tmp/agent")" > /dev/null
agent=$SSH_AGENT_PID
pids="$pids $agent"
unset SSH_AUTH_SOCK SSH_AGENT_PID
ok "an agent without keys is refused behind a jump host" eval 'deploy 2 inner -- info summary; says "inner: failed: it refuses the keys of this user" err'
SSH_AUTH_SOCK=$tmp/agent ssh-add -q user 2> err
ok "with the key in the agent, the command runs there" eval 'deploy 0 inner -- info summary && says "inner: ended with exit code 0" err && empty 2'
ok ".. through the jump host" says 'Accepted publickey for .* from 10\.9\.9\.1 ' sshd.inner.log
kill "$agent"

# -- only what differs is copied --
ok "with --keep the program stays" deploy 0 gpu1 --keep --send one.yaml -- check --suite one.yaml
ok ".. in the store, without the run" eval 'on 1 sh -c "ls $cache/deploy/files | grep -q . && [ -z \"\$(ls $cache/deploy/runs)\" ]"'
first=$(sed -n 's/.*gpu1: copying \([0-9.]*\) MB.*/\1/p' err)
ok ".. and the next deployment copies nothing of it" deploy 0 gpu1 --keep -- info summary
ok ".. but its command" eval 'says "gpu1: copying 0.0 MB" err && [ "${first%.*}" -ge 5 ]'
ok ".. the output of the command is here" eval 'dir=$(dir_of); grep -qi cpu "$dir/hosts/gpu1/out"'
on 1 sh -c "for f in $cache/deploy/files/*; do echo damage >> \$f; break; done"
ok "a damaged file is copied again" deploy 0 gpu1 -- info summary
ok ".. and the host is clean after it" empty 1

# -- hosts that cannot be used do not stop the others --
ok "a wrong key, a changed host key, an unknown one, and a closed port" deploy 2 stranger changed unknown nowhere gpu1 -- info summary
dir=$(dir_of)
ok ".. the wrong key is named" says 'stranger: failed: it refuses the keys of this user: .*Permission denied' err
ok ".. the changed key is refused" says 'changed: failed: its host key has changed, .*ssh-keygen -R changed' err
ok ".. the unknown key is refused" says 'unknown: failed: its host key is not known: .*--accept-new' err
ok ".. the closed port is named" says 'nowhere: lost: it cannot be reached: .*Connection refused' err
ok ".. the other host did its work" eval 'state gpu1 cleaned && empty 1'
ok ".. a changed key is refused with --accept-new too" deploy 2 changed --accept-new -- info summary
ok ".. as changed" says 'its host key has changed' err
ok ".. an unknown one is accepted with it" deploy 0 unknown --accept-new -- info summary
ok ".. and saved" says '^unknown ' known_hosts
ok ".. and then known" deploy 0 unknown -- info summary

# -- programs that a host lacks --
rm tools/sha256sum tools/wc
ok "a host without sha256sum and wc" deploy 2 gpu3 -- info summary
ok ".. is told by the names of both" says 'gpu3: failed: it lacks programs that are needed to copy and run assay: sha256sum wc' err
for tool in sha256sum wc; do ln -s "$(command -v $tool)" tools/; done
ok ".. and continued when they are there" expect 0 deploy --resume "$(dir_of)"

# -- a full disk --
on 2 mount -t tmpfs -o size=8m none "$home"
ok "a disk that is full before the copy" deploy 2 gpu2 -- info summary
ok ".. is told with both sizes" says 'gpu2: failed: its disk is full: 7 MiB are free, and [0-9]* MiB are needed' err
ok ".. and --stop removes what the attempt left" eval 'expect 2 deploy --resume "$(dir_of)" --stop && empty 2'
on 2 umount "$home"
# a df that promises too much
mkdir liar
printf '#!/bin/sh\necho Filesystem\necho none 9000000 1 9000000 1%% /\n' > liar/df
chmod +x liar/df
server liar 10.9.8.10 host
sed -i "s/^Port .*/Port $((port + 1))/" sshd.liar
echo "SetEnv PATH=$tmp/liar:$PATH" >> sshd.liar
client liar 10.9.8.10 user
sed -i "1i Host liar\n\tPort $((port + 1))" ssh_config
echo "liar $(cut -d ' ' -f 1,2 host.pub)" >> known_hosts
on 2 "$sshd" -f "$tmp/sshd.liar" -E "$tmp/sshd.liar.log"
on 2 mount -t tmpfs -o size=4m none "$home"
ok "a disk that fills during the copy" deploy 2 liar -- info summary
ok ".. is told with the file" says 'liar: failed: cannot write .*/incoming' err
ok ".. and the incomplete file is gone" eval 'on 2 sh -c "[ -z \"\$(ls $cache/deploy/runs/*/incoming 2>/dev/null)\" ]"'
on 2 umount "$home"
ok ".. with space it continues" expect 0 deploy --resume "$(dir_of)"

begin() { # ARGS..: in the background; waits until each host follows
	: > err
	"$assay" deploy --ssh-config ssh_config --bundle "$bundle" --patience "${patience:-30s}" "$@" > out 2> err &
	pid=$!
	comes grep -q 'deploying to' err
	dir=$(dir_of)
}
follows() { comes state "$1" followed; }
begin gpu2 --send slow.yaml -- check --suite slow.yaml
ok "a run under way" follows gpu2
on 2 sh -c "dd if=/dev/zero of='$home/filler' bs=1M" 2> /dev/null
kill -TERM $pid
wait $pid
code=$?
ok "a request to stop ends the program, not the run" eval '[ $code = 2 ] && running_on 2 && says "The runs on the hosts continue. Continue with assay deploy --resume" err'
ok "with a full disk, --stop ends the run and gets its exit code" eval '"$assay" deploy --resume "$dir" --stop > out 2> err; [ $? -le 2 ] && state gpu2 cleaned && grep -q "gpu2: ended with exit code" err'
ok ".. and its journal" eval '[ -s "$(ls $dir/hosts/gpu2/work/assay-runs/*/journal.jsonl)" ]'
on 2 rm "$home/filler"
ok ".. nothing of it is left" empty 2

# -- a host dies in mid-run, another run is killed, a third one goes on --
patience=12s
begin gpu1 gpu2 gpu3 --send slow.yaml -- check --suite slow.yaml
patience=
ok "three runs under way" eval 'follows gpu1 && follows gpu2 && follows gpu3'
ip link set va3 down
for p in $(on 2 sh -c "cut -d' ' -f1 $cache/deploy/runs/*/pid"); do kill -KILL "$p"; done
ok "a run that was killed is told, and its files are fetched" eval 'comes state gpu2 cleaned && says "gpu2: the run ended without an exit code" err && ls "$dir"/hosts/gpu2/work/assay-runs/*/journal.jsonl'
ok "a host that died is lost after --patience" comes state gpu3 lost
ok ".. which is told" says 'gpu3: lost: it has not answered for [0-9]* s' err
ok ".. the other run goes on" state gpu1 followed
"$assay" deploy --resume "$dir" > out2 2> err2
code=$?
ok "two programs cannot continue one deployment" eval '[ $code = 64 ] && says "another assay deploy works in" err2'
kill -KILL $pid
wait $pid 2> /dev/null
ok "a program that is killed leaves the runs" running_on 1
ip link set va3 up
ok "--resume continues all of them, and --stop ends them" eval '"$assay" deploy --resume "$dir" --stop > out 2> err; code=$?; [ $code = 2 ] && state gpu1 cleaned && state gpu3 cleaned && empty 1 2 3'
ok ".. with three runs in the report" eval '[ "$(grep -c "hosts/gpu[123]/work/assay-runs" "$dir/fleet.txt")" -ge 3 ]'
ok ".. a second --resume has nothing to do" eval '"$assay" deploy --resume "$dir" > out 2> err; [ $? = 2 ] && says "cleaned" out'

# -- a slow link, and a copy that is interrupted --
slow_link() { tc qdisc add dev va1 root tbf rate 8mbit burst 32kbit latency 400ms; }
arrived() { [ "$(on 1 sh -c "cat $cache/deploy/runs/*/incoming" 2> /dev/null | wc -c)" -gt "$1" ]; }
if slow_link 2> /dev/null; then
	begin gpu1 -- info summary
	ok "a slow link: bytes arrive" comes arrived 500000
	for p in $(pgrep -f "ssh .*-Tax -- gpu1"); do kill -KILL "$p"; done
	ok "a copy that is interrupted continues where it ended" comes says 'gpu1: copying [0-9.]* MB, from [0-9.]* MB on' err
	comes arrived 2000000
	kill -KILL $pid
	wait $pid 2> /dev/null
	ok ".. also after this program was killed" eval '"$assay" deploy --resume "$dir" > out 2> err; [ $? = 0 ] && says "from [1-9][0-9.]* MB on" err && state gpu1 cleaned'
	tc qdisc del dev va1 root
else
	untested "a slow link" "this kernel has no token bucket filter, or tc is not installed"
fi

# -- the suite of seven stages, and the tutorial as written but for the number of nodes, the suite, and where the keys are --
ok "the suite of seven stages" eval 'deploy 0 gpu1 -- check acceptance; [ $? = 0 ] || [ $code -le 2 ]'
dir=$(dir_of)
ok ".. ran to its end" eval 'state gpu1 cleaned && grep -q "\"type\":\"close\",\"ending\":\"done\"" $dir/hosts/gpu1/work/assay-runs/*/journal.jsonl'
mkdir bin
printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$(command -v ssh)" "$tmp/ssh_config" > bin/ssh && chmod +x bin/ssh
ln -s "$tmp/$bundle/assay" bin/assay
PATH=$tmp/bin:$PATH
commands tutorial/prove-twenty-nodes-over-ssh.md | sed 's/gpu\[1-20\]/gpu[1-3]/; s/ -- check quick/ --send one.yaml -- check --suite one.yaml/' > walk
ok "the tutorial has its five commands" [ "$(wc -l < walk)" = 5 ]
while read -r line; do
	ok "tutorial: $line" sh -c "$line" < /dev/null
done < walk
ok ".. and its table names each node" [ "$(grep -c '^gpu[123] *cleaned *0 ' proof/fleet.txt)" = 3 ]

# -- wrong usage --
wrong() { # PATTERN ARGS..
	pattern=$1
	shift
	ok "refused: $pattern" expect 64 deploy "$@"
	ok ".. and named" says "$pattern" err
}
wrong 'no hosts given'
wrong 'host a is listed twice' a b a
wrong 'characters that no host name has' 'a;b'
wrong 'is not written as HOST' @a
wrong '"\.\." is no host name' ..
wrong 'cannot be combined' a --hostfile names
wrong '"chek" after -- is not an assay command' a -- chek
wrong 'there is no suite "nosuch"' a -- check nosuch
wrong 'NAME=value' a --env 1A=2
wrong 'is no bundle' a --bundle "$tmp"
wrong 'nowhere.yaml: No such file' a --bundle "$bundle" --send nowhere.yaml
wrong 'not an absolute path' a --remote-dir here
wrong '\-\-stop needs --resume' a --stop
wrong 'give only --stop or --patience' a --resume "$dir"
wrong 'deploy.json' --resume nowhere
mkdir damaged
sed 's/"state": "cleaned"/"state": "elsewhere"/' "$dir/deploy.json" > damaged/deploy.json
wrong 'a host has an unknown state' --resume damaged
head -c 100 "$dir/deploy.json" > damaged/deploy.json
wrong 'damaged/deploy.json' --resume damaged
sed "s|\"name\": \"gpu1\"|\"name\": \"-oProxyCommand=x\"|" "$dir/deploy.json" > damaged/deploy.json
wrong 'characters that no host name has' --resume damaged
wrong 'already holds a deployment' a --bundle "$bundle" --out "$dir"
finish

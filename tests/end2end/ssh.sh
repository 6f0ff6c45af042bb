#!/bin/sh
# assay launch over real ssh: an sshd with its own keys, configuration and known hosts in a scratch folder, on two hosts
# (network and UTS namespaces, a veth between them) where this is root, else on two addresses of this one. usage: ssh.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")
PATH=$PATH:/usr/sbin:/sbin
. "$here/tap.sh"
. "$here/ports.sh"
. "$here/walk.sh"
. "$here/ssh_hosts.sh"
ssh_is_here
[ "${2:-}" = inside ] || hosts_inside "$assay"

hosts_begin "${2:-}"
client "$first" $one user
client "$second" $two user
client unknown $one user
client refused $one stranger
client closed $one user
printf 'Host closed\n\tPort 1\n' >> ssh_config
for name in "$first" "$second" refused; do echo "$name $(cut -d ' ' -f 1,2 host.pub)"; done > known_hosts
echo "unknown $(cut -d ' ' -f 1,2 other.pub)" >> known_hosts
hosts_serve

launch() { # CODE HOSTS ARGS..
	code=$1 hosts=$2
	shift 2
	expect "$code" launch --hosts "$hosts" --ranks-per-node 2 --ssh-config "$tmp/ssh_config" "$@"
}
long=67.$$s # a case that none waits for the end of, and that tells our ranks from others'
ranks_left() { pgrep -f "assay __team --time $long" > /dev/null; }
no_ranks_left() { ! ranks_left; }

ok "two hosts: four ranks meet" launch 0 "$first,$second" -- __team
ok ".. all four, and part" [ "$(grep -c '"size":4.*"ending":"done"' out)" = 4 ]
[ "$first" != gpu1 ] || ok ".. on two nodes" says '"name":"gpu1".*"name":"gpu2"' out
ok ".. what each says carries its host's name" sh -c 'grep -q "assay: $1: " err && grep -q "assay: $2: " err' sh "$first" "$second"
if [ "$first" = gpu1 ]; then # as written, but for where the keys lie
	mkdir bin
	ln -s "$assay" bin/assay
	printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$(command -v ssh)" "$tmp/ssh_config" > bin/ssh && chmod +x bin/ssh
	printf '# the rack\ngpu1\ngpu2   # lower\n' > hosts
	PATH=$tmp/bin:$PATH
	walks 16 2 how-to/launch-over-ssh.md tutorial/first-cluster.md
fi
ok "a word with blanks and quotes arrives as it is" launch 64 "$first,$second" -- __team --time "it's \$HOME; id"
ok ".. and is refused by the program itself" says "it's \$HOME; id" err
ok "a host whose key is another" launch 2 "$first,unknown" -- __team
ok ".. is named with ssh's last line" says 'unknown cannot be used: .*[Vv]erification failed' err
ok "a host that refuses our key" launch 2 "$first,refused" -- __team
ok ".. is named with ssh's last line" says 'refused cannot be used: .*Permission denied' err
ok "a host that does not answer" launch 2 "$first,closed" -- __team
ok ".. is named with ssh's last line" says 'closed cannot be used: .*Connection refused' err
ok "a host that nobody knows" launch 2 "$first,no-such-host.invalid" -- __team
ok ".. is named with ssh's last line" says 'no-such-host.invalid cannot be used: .*\(not known\|resolve\)' err
ok ".. and nothing is left of any" comes no_ranks_left

begin() { # a team of four in a case of a minute
	: > err
	"$assay" launch --hosts "$first,$second" --ranks-per-node 2 --ssh-config "$tmp/ssh_config" -- __team --time "$long" --limit 90s > out 2> err &
	pid=$!
	comes sh -c '[ "$(grep -c "case 1 begins" err)" = 4 ]'
}
begin
ok "a team under way" ranks_left
kill -TERM $pid
wait $pid
code=$?
ok "a request to stop ends inconclusive" [ $code = 2 ]
ok ".. after each rank has heard it" [ "$(grep -c 'error: .*stopped on request' err)" -ge 4 ]
ok ".. and leaves nothing" comes no_ranks_left
begin
kill -KILL $pid
wait $pid 2> /dev/null
ok "a launcher that is killed leaves nothing either" comes no_ranks_left
begin
for s in $(pgrep -f 'ssh .* -Tax -- '"$second"); do kill -KILL "$s"; done
wait $pid
code=$?
ok "a connection that is lost ends inconclusive" [ $code = 2 ]
ok ".. with a rank beyond it named by the others" says "$first: .*\(lost rank [23]\|rank [23] .*ended the team\)" err
ok ".. and leaves nothing" comes no_ranks_left
finish

#!/bin/sh
# assay deploy with hosts that accept a connection and then hang. The ssh of this test opens no connection: a host that answers is a
# shell of this machine, and one that hangs sleeps. usage: deploy_hang.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
mkdir -p bin bundle/lib
cat > bin/ssh << 'SSH'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
silent*) exec sleep 600 ;;
chatty*) while echo "still here" >&2; do sleep 0.2; done ;;
flood*) exec yes "still here" >&2 ;;
greets*) while echo "welcome"; do sleep 0.2; done ;;
begins*) echo begin && exec sleep 600 ;;
*) exec sh -c "$3" ;;
esac
SSH
printf '#!/bin/sh\necho assay\n' > bundle/assay
chmod +x bin/ssh bundle/assay
echo x > bundle/lib/libx.so.1
PATH=$tmp/bin:$PATH
state() { # HOST STATE, in the folder of this deployment
	tr -d '\n' < "$dir/deploy.json" | grep -q "\"name\": \"$1\"[^}]*\"state\": \"$2\""
}
comes() { # COMMAND..: within two minutes
	for _ in $(seq 240); do
		"$@" > /dev/null 2>&1 && return
		sleep 0.5
	done
	return 1
}

dir=hangs
for kind in silent chatty flood greets begins; do
	"$assay" deploy "$kind" --bundle bundle --remote-dir "$tmp/node" --out "$kind" --patience 3s -- info summary > "$kind.out" 2> "$kind.err" &
	eval "$kind=\$!"
done
for kind in silent chatty flood greets begins; do
	dir=$kind
	ok "a host that hangs ($kind) is lost after --patience" comes state "$kind" lost
	eval "kill \$$kind 2> /dev/null; wait \$$kind"
done
ok ".. with a reason" says 'silent: lost: .*no answer comes' silent.err

dir=many
"$assay" deploy 'silent[1-32],works' --bundle bundle --remote-dir "$tmp/node" --out many --patience 10min -- info summary > out 2> err &
pid=$!
ok "32 hosts that hang do not keep another one from its run" comes state works cleaned
ok ".. while they are tried" eval '! state silent1 lost && ! state silent32 lost'
kill -TERM $pid
wait $pid
code=$?
ok ".. and a request to stop ends all connections" eval '[ $code = 2 ] && says "Continue with assay deploy --resume" err'
finish

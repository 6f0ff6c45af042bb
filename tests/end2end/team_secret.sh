#!/bin/bash
# What the ranks of a team share is told to nobody: not over the wire, not to what they start, not to mpirun's daemons.
# usage: team_secret.sh ASSAY RELAY
set -u
assay=$(realpath "$1") relay=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$here/ports.sh"
scratch
unset ASSAY_TEAM_SECRET_FILE
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET
secret=$ASSAY_TEAM_SECRET
ports
comes() { # COMMAND..: true within 30 s
	for _ in $(seq 300); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

# Two ranks; rank 1 reaches rank 0 through a relay that keeps what is said: it has the first port, so rank 0 takes the next.
cat > suite.yaml << 'S'
name: meeting
cases:
  - {probe: "null", engine: ranks, target: team, phases: burst, seconds: 3s, limit: 30s, require: measured, options: {time: 2ms}}
S
"$relay" "$port" 127.0.0.1 $((port + 1)) keep said > relay.out 2>&1 &
relayed=$!
trap 'kill $relayed 2> /dev/null; rm -rf "$tmp"' EXIT
comes grep -q ready relay.out
for r in 0 1; do
	ASSAY_SIZE=2 ASSAY_LOCAL_SIZE=2 ASSAY_HOST=127.0.0.1 ASSAY_PORT=$port ASSAY_JOB=secret$$ ASSAY_RANK=$r ASSAY_LOCAL_RANK=$r \
		timeout 100 "$assay" check --suite suite.yaml --no-telemetry --out run > "out.$r" 2> "err.$r" &
	pids[r]=$!
done
below() { # PID: it and all that it started, but for timeout itself
	for child in $(pgrep -P "$1"); do
		echo "$child"
		below "$child"
	done
}
workers_run() { [ "$(cat $(below "$$" | sed 's,.*,/proc/&/cmdline,') 2> /dev/null | tr '\0' '\n' | grep -c '^__worker$')" = 2 ]; }
ok "both ranks have workers" comes workers_run
for pid in $(below ${pids[0]}) $(below ${pids[1]}); do
	tr '\0' '\n' < "/proc/$pid/environ" | sed "s/^/$(tr '\0' ' ' < "/proc/$pid/cmdline" | cut -c1-40): /" >> environments
done 2> /dev/null
ok "what they started has their environment" grep -q 'ASSAY_JOB=secret' environments
ok "but not the secret, nor have they themselves" eval '! grep -n "$secret\|ASSAY_TEAM_SECRET=" environments'
codes=
for r in 0 1; do
	wait ${pids[r]}
	codes="$codes $?"
done
ok "the case is measured by both" [ "$codes" = ' 0 0' ]
ok "the relay saw where the workers listen, and the nonce of their secret" \
	grep -aqE '"nonce": ?"[0-9a-f]{32}", ?"port": ?[0-9]|"port": ?[0-9]+, ?"nonce": ?"[0-9a-f]{32}"' said
ok "but no secret, of the team or of its workers" eval '! grep -aq "$secret\|\"secret\"" said'

# A program of somebody else.
"$assay" profile --out profiled --no-telemetry -- sh -c 'env > foreign; cat /proc/$PPID/environ | tr "\0" "\n" > parent' > out 2> err
ok "a profiled program ran" grep -q '^PATH=' foreign
ok "and has no secret" eval '! grep "$secret\|ASSAY_TEAM_SECRET" foreign'
ok "nor finds it in the environment of who started it" eval '[ -s parent ] && ! grep "$secret" parent'

# mpirun: a file of 0600, whose name alone is in its environment.
mkdir bin home
cat > bin/mpirun << 'S'
#!/bin/sh
[ "$1" != --version ] || { echo "mpirun (Open MPI) 4.1.4"; exit 0; }
echo "$@" > words
env > given
[ -z "${ASSAY_TEAM_SECRET_FILE:-}" ] || { stat -c '%a' "$ASSAY_TEAM_SECRET_FILE" > mode; cat "$ASSAY_TEAM_SECRET_FILE" > text; }
while [ "$1" != "$ASSAY" ]; do shift; done
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 exec "$@"
S
chmod +x bin/mpirun
export ASSAY="$assay"
by_mpirun() { HOME=$tmp/home PATH=$tmp/bin:$PATH "$assay" launch --how mpirun --ranks-per-node 1 "$@" -- __team > out 2> err; }
ok "launch by mpirun" by_mpirun
ok "mpirun is told where the secret is" eval 'grep -q "^ASSAY_TEAM_SECRET_FILE=$tmp/home/.cache/assay/team/launch-" given && grep -q -- "-x ASSAY_TEAM_SECRET_FILE" words'
ok "in a file for its owner alone" [ "$(cat mode)" = 600 ]
ok "which has 128 bits of its own" eval 'grep -qE "^[0-9a-f]{32}$" text && [ "$(cat text)" != "$secret" ]'
ok "the secret itself is in no environment and on no command line" eval '! grep "^ASSAY_TEAM_SECRET=\|$(cat text)" given words'
ok "the file is gone when the ranks have ended" eval '! ls home/.cache/assay/team/* 2> /dev/null'
rm -f given mode text
by_mpirun --print && mv out script
HOME=$tmp/home PATH=$tmp/bin:$PATH sh script > out 2> err
ok "the script that is shown does the same" eval '[ "$(cat mode)" = 600 ] && grep -qE "^[0-9a-f]{32}$" text && ! grep "^ASSAY_TEAM_SECRET=.*$(cat text)" given'
ok ".. and removes it" eval '! ls home/.cache/assay/team/* 2> /dev/null'
unset ASSAY_TEAM_SECRET
ASSAY_TEAM_SECRET_FILE=$tmp/nowhere ASSAY_SIZE=2 ASSAY_RANK=1 ASSAY_HOST=127.0.0.1 ASSAY_PORT=$port "$assay" __team --join 5s > out 2> err
code=$?
ok "a rank whose home has no such file ends when the time to join is over" [ $code = 2 ]
ok "and says what to do" says 'the file .*/nowhere of the team.s secret is not on this node yet: if the nodes share no home folder, place one file of mode 0600 on each and name it with --team-secret' err
# The file comes late to both nodes, as over NFS.
for r in 0 1; do
	ASSAY_TEAM_SECRET_FILE=$tmp/late ASSAY_SIZE=2 ASSAY_RANK=$r ASSAY_HOST=127.0.0.1 ASSAY_PORT=$((port + 5)) ASSAY_JOB=late$$ \
		timeout 100 "$assay" __team --join 60s > "out.$r" 2> "err.$r" &
	pids[r]=$!
done
sleep 1
(umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > new && mv new late)
codes=
for r in 0 1; do
	wait ${pids[r]}
	codes="$codes $?"
done
ok "ranks that see the file late meet all the same" [ "$codes" = ' 0 0' ]
finish

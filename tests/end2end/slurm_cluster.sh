# A controller and two nodes of Slurm on this machine, proof1 and proof2, with their own munge, all in a scratch folder $tmp on ports of their own. For
# the scripts beside it, which take it in with `.` after tap.sh and ports.sh.
cluster_programs() { # skips the test if one is missing
	for program in slurmctld slurmd srun sbatch munged; do
		command -v $program > /dev/null || lacks "$program is not installed (packages slurmctld slurmd slurm-client munge)"
	done
	[ "$(id -u)" = 0 ] || lacks "slurmd starts jobs as root alone"
}
finish_daemons() {
	for p in $pids; do kill "$p" 2> /dev/null; done
	for _ in $(seq 300); do # slurmctld writes its state at the end
		alive=no
		for p in $pids; do kill -0 "$p" 2> /dev/null && alive=yes; done
		[ $alive = no ] && break
		sleep 0.1
	done
	rm -rf "$tmp"
}
comes() { # COMMAND..: true within 30 s
	for _ in $(seq 1200); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}
# cluster_begin inside|'': goes to $tmp and starts all daemons. inside: in a mount namespace of our own, so that the nodes' names can be
# looked up. A script may replace cluster_more, which prints more lines of slurm.conf. Sets $master for assay launch.
cluster_more() { :; }
cluster_begin() {
	tmp=$(mktemp -d) || exit 1
	pids=
	trap finish_daemons EXIT
	chmod 755 "$tmp"
	cd "$tmp" || exit 1
	ports
	master=
	if [ "$1" = inside ]; then
		{ cat /etc/hosts; echo '127.0.0.1 proof1 proof2'; } > hosts
		mount --bind hosts /etc/hosts || master="--master 127.0.0.1"
	else
		master="--master 127.0.0.1"
	fi
	mkdir state spool log tmp.proof1 tmp.proof2 # PMIx takes a folder of the node's in TmpFS
	(umask 077 && head -c 128 /dev/urandom > munge.key)
	munged --key-file="$tmp/munge.key" --socket="$tmp/munge.socket" --pid-file="$tmp/munged.pid" --log-file="$tmp/log/munged" \
		--seed-file="$tmp/munge.seed" --force > log/munged.out 2>&1 || lacks "munged does not start here: $(tail -n 1 log/munged.out)"
	comes [ -s munged.pid ] && pids=$(cat munged.pid)
	cat > slurm.conf << CONFIG
ClusterName=proof
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$tmp/munge.socket${credential:-}
CredType=cred/munge
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool/%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd.%n.pid
SlurmctldLogFile=$tmp/log/slurmctld
SlurmdLogFile=$tmp/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
TmpFS=$tmp/tmp.%n
EnforcePartLimits=ALL
ReturnToService=2
$(cluster_more)
KillWait=5
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=proof1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=8 RealMemory=200 Gres=gpu:8
NodeName=proof2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=8 RealMemory=200 Gres=gpu:8
PartitionName=all Nodes=proof1,proof2 Default=YES MaxTime=300 State=UP
CONFIG
	touch gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6 gpu7 # to be counted and handed out, not used
	echo "Name=gpu File=$tmp/gpu[0-7]" > gres.conf
	export SLURM_CONF="$tmp/slurm.conf"
	slurmctld > log/out 2>&1 && slurmd -N proof1 >> log/out 2>&1 && slurmd -N proof2 >> log/out 2>&1 ||
		lacks "Slurm does not start here: $(tail -n 1 log/out)"
	comes sh -c '[ -s slurmctld.pid ] && [ -s slurmd.proof1.pid ] && [ -s slurmd.proof2.pid ]'
	pids="$(cat slurmd.proof1.pid slurmd.proof2.pid slurmctld.pid) $pids"
	comes sh -c '[ "$(sinfo -h -t idle -o %D)" = 2 ]' || lacks "Slurm's nodes do not come up here: $(grep error log/slurmctld | head -n 3)"
}

#!/bin/sh
# The files that `assay deploy --as` prints: word for word, as YAML and against the schemas of Kubernetes where python3 has them, as a shell
# script, and under a stand-in of Slurm. usage: deploy_files.sh ASSAY ROOT [--update]
set -u
assay=$(realpath "$1") root=$(realpath "$2") update=${3:-} here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
arch=$(uname -m)
golden() { # NAME ARGS..
	want=$root/tests/data/deploy/$1 name=$1
	shift
	"$assay" deploy "$@" > out 2> err || return 1
	sed -e "s|$assay|/opt/assay/assay|g" -e "s/-$arch/-ARCH/" -e 's/assay-[0-9.]*-ARCH/assay-VERSION-ARCH/' out > "$name"
	[ "$update" != --update ] || { mkdir -p "$(dirname "$want")" && cp "$name" "$want"; }
	diff "$want" "$name"
}
ok "a Slurm array" golden slurm-array.sh --as slurm-array --gpus-per-node 8 --nodes 20 --time 30 --partition gpu --account us -- check quick --site "my site.yaml"
ok "a Job" golden job.yaml --as kubernetes-job --gpus-per-node 8 --nodes 20 --image registry.example/assay:1 -- check quick --site 'a "quoted" \ word'
ok "a Job without GPUs" golden job-cpu.yaml --as kubernetes-job --nodes 2 --gpus-per-node 0 --image assay --namespace proof --name check-2
ok "a DaemonSet" golden daemonset.yaml --as kubernetes-daemonset --machine "$root/tests/replay/derived-h100-sxm-8" --image registry.example/assay@sha256:0123 -- check quick
ok "a HorizontalPodAutoscaler" golden hpa.yaml --as kubernetes-hpa --nodes 8 --name chat
ok "a ServiceMonitor" golden servicemonitor.yaml --as kubernetes-servicemonitor --name chat --namespace models --port 8080
ok "a container file" golden Containerfile --as containerfile
ok "a container file on another image" golden Containerfile-cuda --as containerfile --image docker.io/nvidia/cuda:13.0.0-base-ubuntu24.04 -- info all

# reasons FILE: each setting has a reason directly above it. Settings of YAML are the keys of the first level and those of each spec;
# the reason of apiVersion is for kind too, and a spec has the reasons of its keys. Settings of the others are the options of Slurm,
# variables, and instructions for an image.
reasons() {
	awk '
	function setting(is) {
		seen += is
		if (is && !reason) { print FILENAME ":" FNR ": no reason above: " $0; bad = 1 }
		reason = 0
	}
	/^#!/ { next }
	/^ *# / { reason = 1; next }
	FILENAME ~ /\.sh$/ { setting(/^#SBATCH / || /^[a-z]+=/ || /^exec /); next }
	FILENAME ~ /^Containerfile/ { setting(/^[A-Z]+ /); next }
	/^---$/ { depth = reason = 0; next }
	{
		match($0, /^ */)
		indent = RLENGTH
		while (depth && indent <= spec[depth]) depth--
		key = substr($0, indent + 1)
		is = key !~ /^- / && (indent == 0 || (depth && indent == spec[depth] + 2))
		setting(is && key !~ /^(kind|spec):/)
		if (key == "spec:") spec[++depth] = indent
	}
	END { exit bad || seen < 5 }' "$1"
}
for file in slurm-array.sh job.yaml job-cpu.yaml daemonset.yaml hpa.yaml servicemonitor.yaml Containerfile Containerfile-cuda; do
	ok "$file has a reason above each setting" reasons $file
done
# Settings without their reason are found: FILE, the setting, and how many lines of comment are above it.
while read -r file setting lines; do
	awk -v setting="$setting" -v lines="$lines" '{ line[NR] = $0; if ($1 == setting && !at) at = NR } END { for (i = 1; i <= NR; i++) if (i < at - lines || i >= at) print line[i] }' $file > bare-$file
	ok "without its reason, $setting of $file is found" eval '! reasons bare-$file > found && grep -q "no reason above: .*$setting" found'
done << 'SETTINGS'
job.yaml metadata: 1
job.yaml parallelism: 1
job.yaml volumes: 1
daemonset.yaml initContainers: 2
hpa.yaml behavior: 1
servicemonitor.yaml endpoints: 1
servicemonitor.yaml apiVersion: 2
slurm-array.sh exec 1
Containerfile RUN 1
SETTINGS
for metric in assay_requests_waiting assay_kv_cache_use_ratio; do
	ok "the autoscaler reads $metric, which the server exports" eval 'says "name: $metric" hpa.yaml && says "$metric" "$root/docs/reference/serving.md"'
done

# The script of the array, as Slurm would run it: two tasks on one node, then one whose folder cannot be made.
ok "the array's script is one for a shell" sh -n slurm-array.sh
sed 's|^exec .*|pwd > ran|' slurm-array.sh > task.sh
task() { SLURM_SUBMIT_DIR=$1 SLURM_ARRAY_JOB_ID=7 SLURMD_NODENAME=n1 sh task.sh > task.out 2>&1; }
ok "a task works in the folder of its node" eval 'task "$tmp" && [ -s assay-7/n1/ran ]'
ok "a second task on this node ends" eval 'rm assay-7/n1/ran && task "$tmp" && [ ! -e assay-7/n1/ran ] && says "n1 was checked by another task" task.out'
ok "a folder that cannot be made is inconclusive" eval 'task /dev/null; [ $? = 2 ]'
if command -v sbatch > /dev/null && sbatch --version > /dev/null 2>&1; then
	grep '^#SBATCH' slurm-array.sh > options
	ok "sbatch knows all options of the array" eval '! sbatch --test-only slurm-array.sh 2>&1 | grep -i "unrecognized\|invalid option\|unknown option"'
fi

# The published schemas, where tests/run.sh has fetched them. They come with a yaml for python3.
schemas=${ASSAY_KUBERNETES_SCHEMAS:-}
[ -z "$schemas" ] || export PYTHONPATH="$schemas"
if python3 -c 'import yaml' 2> /dev/null; then
	python3 "$root/tests/oracles/kubernetes_files.py" job.yaml job-cpu.yaml daemonset.yaml hpa.yaml servicemonitor.yaml > oracle 2>&1
	code=$?
	sed 's/^/# /' oracle
	ok "the files of Kubernetes are YAML and have the fields that they must have" [ $code = 0 ]
	sed 's/completions: 20/completion: 20/' job.yaml > wrong1.yaml
	sed 's/interval: 15s/interval: 15 seconds/' servicemonitor.yaml > wrong2.yaml
	sed 's/type: AverageValue/type: Utilization/' hpa.yaml > wrong3.yaml
	if [ -n "$schemas" ]; then
		for kind in Job DaemonSet HorizontalPodAutoscaler Service; do
			ok "$kind is valid by the schemas of Kubernetes" says "yaml: $kind is valid in Kubernetes 1.27 and 1.37, by kubernetes-validate" oracle
		done
		python3 "$root/tests/oracles/kubernetes_files.py" wrong1.yaml > oracle 2>&1
		ok "the schemas find a planted mistake" says "kubernetes-validate: 1.37: .*completion" oracle
		python3 "$root/tests/oracles/kubernetes_files.py" servicemonitor.yaml > oracle 2>&1
		ok "ServiceMonitor is valid by the definition of prometheus-operator" says 'yaml: ServiceMonitor is valid by the definition of prometheus-operator' oracle
		sed 's/sampleLimit/sampleLimits/' servicemonitor.yaml > wrong4.yaml
		for i in 2:interval 4:sampleLimits; do
			python3 "$root/tests/oracles/kubernetes_files.py" "wrong${i%:*}.yaml" > oracle 2>&1
			ok ".. which finds a planted ${i#*:}" says "yaml: prometheus-operator: .*${i#*:}: " oracle
		done
	else
		ok "the files by the schemas of Kubernetes # SKIP kubernetes-validate is not fetched (ASSAY_TEST_EXAMPLE)" true
	fi
	for i in 1 2 3; do ok "the check finds planted mistake $i" eval '! python3 "$root/tests/oracles/kubernetes_files.py" wrong$i.yaml > oracle 2>&1'; done
else
	ok "the files of Kubernetes # SKIP python3 has no yaml" true
fi

wrong() { # PATTERN ARGS..
	pattern=$1
	shift
	ok "refused: $pattern" expect 64 deploy "$@"
	ok ".. and named" eval 'says "$pattern" err && [ ! -s out ]'
}
wrong '"kubernetes" is not one of' --as kubernetes
wrong '\-\-image is missing' --as kubernetes-job
wrong 'is not the name of an image' --as kubernetes-job --image 'a b'
wrong 'is not the name of an image' --as containerfile --image "a
RUN x"
wrong '\-\-name "Assay"' --as kubernetes-hpa --name Assay
wrong '\-\-namespace "-x"' --as kubernetes-hpa --namespace=-x
if ls /proc/driver/nvidia/gpus/* > /dev/null 2>&1; then
	ok "GPUs of this machine are counted" expect 0 deploy --as slurm-array
	ok ".. into the job" says "^#SBATCH --gpus-per-node=$(ls /proc/driver/nvidia/gpus | wc -l)$" out
else
	wrong 'because this machine has no GPU: give --gpus-per-node' --as slurm-array
fi
ok "GPUs of a recorded machine are counted" expect 0 deploy --as slurm-array --machine "$root/tests/replay/derived-h200-sxm-4"
ok ".. into the job" says '^#SBATCH --gpus-per-node=4$' out
ok "a recorded machine without GPUs asks for none" expect 0 deploy --as slurm-array --machine "$root/tests/replay/cpu-vm-2core"
ok ".. in the job" eval '! says gpus out'
ok "a recording that is not there" eval 'expect 2 deploy --as slurm-array --machine nowhere && says "nowhere" err && [ ! -s out ]'
wrong '"eight" is not a whole number' --as slurm-array --gpus-per-node eight
wrong '"30m" is not a time that Slurm accepts' --as slurm-array --gpus-per-node 0 --time 30m
wrong '\-\-partition' --as slurm-array --gpus-per-node 0 --partition 'a b'
wrong 'needs --nodes of at least 2' --as kubernetes-hpa --name chat
wrong 'with 1 it never scales' --as kubernetes-hpa --name chat --nodes 1
ok "an autoscaler of two pods" expect 0 deploy --as kubernetes-hpa --nodes 2
ok ".. scales from one to two" eval 'says "^  minReplicas: 1$" out && says "^  maxReplicas: 2$" out'
wrong 'cannot be combined with --as' --as kubernetes-hpa gpu1
wrong '\-\-keep cannot be combined with --as' --as slurm-array --keep
wrong 'contains control characters' --as kubernetes-job --image a -- check quick --site 'a
b'
wrong 'there is no suite "nosuch"' --as slurm-array -- check nosuch
finish

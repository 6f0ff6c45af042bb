#!/bin/sh
# `assay __watch`, as top and the exporter start it: a stream of JSON lines, ends, wrong options.
# usage: watch.sh ASSAY NVML-FAKE ROOT
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
export ASSAY_LIB_NVML="$nvml" FAKE_NVML_FILE="$root/tests/fake/h100x4.json"

none_left() { # readers of ours: of this folder
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		left=
		for p in /proc/[0-9]*; do
			[ "$(readlink "$p/cwd")" = "$tmp" ] && tr '\0' ' ' < "$p/cmdline" | grep -q ' __watch ' && left=$p
		done 2> /dev/null
		[ -z "$left" ] && return 0
		sleep 1
	done
	return 1
}
# Reads the stream until a line has the pattern, then closes it.
until_line() { timeout 60 "$assay" __watch "$@" 2> err | grep -m 1 -E "$pattern" > out; }

pattern='^[{]"watch":1,.*"sources":\["gpu","host","ports","runs"\].*"assay_gpu_power_watts"'
ok "the stream begins with its version, sources and metrics" until_line node --interval 0.1s
pattern='"modelName":"NVIDIA H100'
ok "GPUs have their names" until_line node --interval 0.1s
pattern='"scope":"cpu"'
ok "the host is there" until_line node --interval 0.1s
pattern='"s":0,"done":true'
ok "a round of all GPUs ends" until_line node --interval 0.1s
ok "all readers end when nobody reads" none_left
ok "the lifeline ends it" timeout 60 "$assay" __watch node --lifeline < /dev/null
ok "with its children" none_left
"$assay" __watch node --interval 0.1s > out 2> err &
node=$!
until grep -q '"done":true' out; do sleep 0.1; done
kill -KILL $node
ok "children end with a node that was killed" none_left
ok "every line is a JSON object" sh -c '! grep -v -q "^[{].*[}]$" out'
ok "nothing on stderr" [ ! -s err ]
ok "an interval of nothing is refused" expect 64 __watch node --interval 0s
ok "an unknown part is refused" expect 64 __watch everything
finish

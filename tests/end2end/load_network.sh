#!/bin/sh
# `assay load` and the network: certificates that are good and bad, and the hosts that are contacted.
# usage: load_network.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/load_bed.sh"
front= bait=
trap 'front_down; bait_down; down; rm -rf "$tmp"' EXIT

# started FILE: waits until a server has written its port to the file, and prints it
started() {
	for _ in $(seq 200); do grep -q '^port' "$1" && break; sleep 0.05; done
	sed -n 's/^port //p' "$1"
}
# front CERTIFICATE [COUNT CERTIFICATE]: TLS before a new stub; $url is its address
front() {
	front_down
	up --ttft-ms "${ttft:-20}"
	rm -f front.port
	"$build/tests/load/tls_front" ca.pem "${url##*:}" "$@" > front.port &
	front=$!
	url=https://127.0.0.1:$(started front.port)
}
front_down() {
	[ -z "$front" ] || { kill "$front" 2> /dev/null; wait "$front" 2> /dev/null; }
	front=
}
# accepted OPTION..: no certificate is refused; on a busy machine the figures may not be trusted
accepted() {
	load 0 "$@" || [ "$code" = 1 ] || [ "$code" = 2 ]
	holds "$(value answered) > 0 && $(value errors_tls) == 0"
}
# refused WORDS: the certificate is refused with these words, and the server got no request
refused() {
	words=$1
	load 2 --ca-file ca.pem && says "certificate is refused: $words" err || return 1
	says 'certificate is refused' "$dir/journal.jsonl" && says 'certificate is refused' "$dir/SUMMARY.md" || return 1
	front_down
	down
	says '"requests":0,' port
}

# 1. Certificates
if [ -x "$build/tests/load/tls_front" ]; then
	front good
	ok "a good certificate, by its authority" accepted --rate 20 --duration 2 --ca-file ca.pem
	ok "without its authority" refuses 2 'refused: no trusted authority has signed it' "$url" --out r-unknown --no-telemetry --idle 0
	ok "by its name" refuses 2 'refused: no trusted authority has signed it' "https://localhost:${url##*:}" --out r-name --no-telemetry --idle 0
	ok "a file of authorities that is none" refuses 64 'it has no certificate in PEM form' "$url" --ca-file port --out r-none --no-telemetry --idle 0
	ok "one that is not there" refuses 64 'no-such.pem' "$url" --ca-file no-such.pem --out r-gone --no-telemetry --idle 0
	front self_signed
	ok "one that signed itself" refused 'no trusted authority has signed it'
	front expired
	ok "one that has expired" refused 'it has expired'
	front wrong_name
	ok "one of another host" refused '.*does not match.*127.0.0.1'
	for certificate in self_signed expired wrong_name; do
		front $certificate
		ok "$certificate is accepted if the user says so" accepted --rate 20 --duration 2 --insecure
		ok "with a warning" says 'insecure: the server.s certificate is not checked' err
	done
	ttft=1000 # so that more connections are needed at once than have the good certificate
	front good 6 expired
	ttft=
	ok "a certificate that expires during the run" load 1 --rate 40 --duration 3 --warmup 0 --ca-file ca.pem
	ok "fails new connections only" holds "$(value errors_tls) > 0 && $(value answered) > 0"
	ok "which the report keeps" eval 'says "\"error\":\"tls\"" "$dir/requests.jsonl" && says "tls" "$dir/SUMMARY.md"'
	front_down
else
	ok "no GnuTLS to test certificates (libgnutls28-dev) # SKIP" [ "${ASSAY_TEST_DAEMONS:-no}" != yes ]
fi

# 2. Hosts: a second server that must see no connection
bait_up() {
	bait_down
	rm -f bait.port
	"$build/tests/load/stub_server" > bait.port &
	bait=$!
	bait_port=$(started bait.port)
}
bait_down() {
	[ -z "$bait" ] || { kill "$bait" 2> /dev/null; wait "$bait" 2> /dev/null; }
	bait=
}
untouched() { # its summary follows the port
	bait_down
	says '"connections":0,' bait.port
}
bait_up
ok "the bait counts connections" eval 'url=http://127.0.0.1:$bait_port; load 0 --rate 5 --duration 1 --warmup 0 || [ "$code" = 2 ]; ! untouched'
bait_up
up --fault "redirect:1:$bait_port"
ok "a redirect of all requests is told" refuses 64 'status 302, a redirect, which is not followed' "$url" --out r-redirect --no-telemetry --idle 0
up --fault "redirect:0.3:$bait_port"
ok "redirects of some" load 1 --rate 40 --duration 2 --warmup 0
ok "are counted" holds "$(value errors_redirect) > 0 && $(value answered) > 0"
ok "and not followed" untouched
bait_up
up
through() {
	proxy=http://127.0.0.1:$bait_port
	http_proxy=$proxy https_proxy=$proxy all_proxy=$proxy HTTP_PROXY=$proxy HTTPS_PROXY=$proxy ALL_PROXY=$proxy accepted "$@"
}
ok "a proxy of the environment" through --rate 20 --duration 2
ok "is not used" untouched
# A sanitizer's own library must come first, so this is for ordinary builds.
if ! objdump -T "$assay" 2> /dev/null | grep -q __asan_init; then
	noted() {
		runs=$((runs + 1)) dir=run$runs
		CONNECTS=$tmp/connects LD_PRELOAD=$build/tests/load/libconnects.so "$assay" load "$url" --out "$dir" --idle 0.1 --input 20 --output 8 \
			--rate 20 --duration 2 > out 2> err
		code=$?
		[ $code = 0 ] || [ $code = 2 ]
	}
	ok "a run with telemetry and metrics" noted
	ok "connects to the server" says "^127.0.0.1 ${url##*:}\$" connects
	ok "and to nobody else" [ "$(sort -u connects)" = "127.0.0.1 ${url##*:}" ]
fi
finish

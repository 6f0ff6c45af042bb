# An sshd with its own keys, configuration and known hosts in $tmp, on two addresses of this machine, for the scripts beside it, which
# take it in with `.` after tap.sh and scratch. `host` names the hosts, then `sshd_begin` starts it, and `sshd_end` ends it.
. "$here/ports.sh"
PATH=$PATH:/usr/sbin:/sbin
sshd=$(command -v sshd) || lacks "sshd is not installed (package openssh-server)"
command -v ssh > /dev/null && command -v ssh-keygen > /dev/null || lacks "ssh is not installed (package openssh-client)"
ports
for key in host other user stranger; do ssh-keygen -q -t ed25519 -N '' -C "$key" -f "$tmp/$key" || exit 1; done
sshd_folder=
cat > "$tmp/sshd_config" << CONFIG
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
Port $port
HostKey $tmp/host
AuthorizedKeysFile $tmp/user.pub
PidFile $tmp/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
LogLevel VERBOSE
CONFIG
: > "$tmp/ssh_config"
: > "$tmp/known_hosts"
# host NAME ADDRESS KEY HOST-KEY: a name for an address, with the key to use and the key that is known of it
host() {
	printf 'Host %s\n\tHostName %s\n\tHostKeyAlias %s\n\tIdentityFile %s\n' "$1" "$2" "$1" "$tmp/$3" >> "$tmp/ssh_config"
	echo "$1 $(cut -d ' ' -f 1,2 "$tmp/$4.pub")" >> "$tmp/known_hosts"
}
sshd_begin() {
	cat >> "$tmp/ssh_config" << CONFIG
Host *
	Port $port
	User $(id -un)
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile $tmp/known_hosts
	GlobalKnownHostsFile /dev/null
CONFIG
	if [ "$(id -u)" = 0 ] && [ ! -e /run/sshd ]; then # sshd asks for it where it is root
		sshd_folder=/run/sshd
		mkdir $sshd_folder
	fi
	"$sshd" -f "$tmp/sshd_config" -E "$tmp/sshd.log" || lacks "sshd does not start here: $(tail -n 1 "$tmp/sshd.log")"
	for _ in $(seq 100); do [ ! -s "$tmp/sshd.pid" ] || break; sleep 0.1; done
}
sshd_end() {
	[ ! -s "$tmp/sshd.pid" ] || kill "$(cat "$tmp/sshd.pid")" 2> /dev/null
	[ -z "$sshd_folder" ] || rmdir "$sshd_folder" 2> /dev/null
}

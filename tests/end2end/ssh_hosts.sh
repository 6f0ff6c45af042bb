# sshd with keys, configuration and known hosts of our own in $tmp, for the scripts in this folder, which take it in with `.` after tap.sh.
ssh_is_here() { # $sshd
	sshd=$(command -v sshd) || lacks "sshd is not installed (package openssh-server)"
	command -v ssh > /dev/null && command -v ssh-keygen > /dev/null || lacks "ssh is not installed (package openssh-client)"
}
comes() { # COMMAND..: true within 20 s
	for _ in $(seq 1200); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

# Keys of our own: of a host, another host, a user, and a user whom nobody knows.
ssh_keys() {
	for key in host other user stranger; do ssh-keygen -q -t ed25519 -N '' -C "$key" -f "$key" || exit 1; done
}
server() { # NAME ADDRESS HOST-KEY
	cat > "sshd.$1" << CONFIG
ListenAddress $2
Port $port
HostKey $tmp/$3
AuthorizedKeysFile $tmp/user.pub
PidFile $tmp/sshd.$1.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
AcceptEnv no-such-name
LogLevel VERBOSE
CONFIG
}
client() { # NAME ADDRESS KEY
	cat >> ssh_config << CONFIG
Host $1
	HostName $2
	HostKeyAlias $1
	IdentityFile $tmp/$3
CONFIG
}

# Two hosts: network and UTS namespaces with a veth between them where this is root, else two addresses of this one.
# hosts_inside ARGS..: runs $script again in such namespaces, with these arguments and `inside`, where that is possible
hosts_inside() {
	if [ "$(id -u)" = 0 ] && unshare -m -n -u sh -c 'hostname x && mount -t tmpfs none /run' 2> /dev/null; then
		exec unshare -m -n -u "$script" "$@" inside
	fi
}
# hosts_begin inside|'': in $tmp; the names are $first and $second, their addresses $one and $two. $there begins a command of the second host
hosts_begin() {
	tmp=$(mktemp -d) || exit 1
	pids=
	made=
	trap 'kill $pids 2> /dev/null; rm -rf "$tmp"; [ -z "$made" ] || rmdir "$made"' EXIT
	cd "$tmp" || exit 1
	ports
	ssh_keys
	one=127.0.0.1 two=127.0.0.2 there=
	if grep -q ' lo$' /proc/net/if_inet6 2> /dev/null; then two=::1; fi
	first=$one second=$two
	if [ "$1" = inside ]; then
		one=10.9.7.1 two=10.9.7.2 first=gpu1 second=gpu2 there='nsenter -t $other -n -u'
		mount -t tmpfs none /run
		printf '127.0.0.1 localhost\n%s gpu1\n%s gpu2\n' $one $two > names
		mount --bind names /etc/hosts
		hostname gpu1
		ip link set lo up
		unshare -n -u sh -c 'hostname gpu2; exec sleep 600' &
		other=$!
		pids=$other
		comes sh -c "[ \"\$(nsenter -t $other -u hostname)\" = gpu2 ]"
		ip link add va type veth peer name vb && ip link set vb netns "$other" && ip addr add $one/24 dev va && ip link set va up
		nsenter -t "$other" -n sh -c "ip addr add $two/24 dev vb && ip link set vb up && ip link set lo up"
	fi
	if [ "$(id -u)" = 0 ] && [ ! -e /run/sshd ]; then # sshd asks for it where it is root
		made=/run/sshd
		mkdir $made
	fi
}
# hosts_serve: after the clients and known hosts are written, an sshd on each host
hosts_serve() {
	cat >> ssh_config << CONFIG
Host *
	Port $port
	User $(id -un)
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile $tmp/known_hosts
	GlobalKnownHostsFile /dev/null
CONFIG
	server one $one host
	server two $two host
	"$sshd" -f "$tmp/sshd.one" -E sshd.one.log || lacks "sshd does not start here: $(tail -n 1 sshd.one.log)"
	comes [ -s sshd.one.pid ]
	pids="$pids $(cat sshd.one.pid)"
	host_two_serves
}
# host_two_serves: an sshd on the second host, also after its processes have been killed
host_two_serves() {
	rm -f sshd.two.pid
	eval "$there $sshd -f $tmp/sshd.two -E sshd.two.log" || lacks "sshd does not start on the second host: $(tail -n 1 sshd.two.log)"
	comes [ -s sshd.two.pid ]
	pids="$pids $(cat sshd.two.pid)"
}

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

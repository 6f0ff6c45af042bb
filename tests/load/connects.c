/* SPDX-License-Identifier: Apache-2.0 */
/* A library to be loaded before others (LD_PRELOAD). It notes the addresses that the process connects or
 * sends datagrams to, each as a line "ADDRESS PORT" of the file $CONNECTS. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(const struct sockaddr *to)
{
	const char *path = getenv("CONNECTS");
	char host[INET6_ADDRSTRLEN] = "", line[80];
	unsigned port = 0;
	int fd, size;

	if (!path || !to || (to->sa_family != AF_INET && to->sa_family != AF_INET6))
		return;
	if (to->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)to;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		port = ntohs(in->sin_port);
	} else {
		const struct sockaddr_in6 *in = (const void *)to;

		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host));
		port = ntohs(in->sin6_port);
	}
	size = snprintf(line, sizeof(line), "%s %u\n", host, port);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)size) != size)
		abort(); /* a connection that is not noted would be overlooked */
	close(fd);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
	note(to.__sockaddr__);
	return (int)syscall(SYS_connect, fd, to.__sockaddr__, size);
}

ssize_t sendto(int fd, const void *bytes, size_t size, int flags, __CONST_SOCKADDR_ARG to, socklen_t length)
{
	note(to.__sockaddr__);
	return syscall(SYS_sendto, fd, bytes, size, flags, to.__sockaddr__, length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	note(message->msg_name);
	return syscall(SYS_sendmsg, fd, message, flags);
}

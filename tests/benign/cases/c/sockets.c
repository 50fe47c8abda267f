/* Sockets, poll, epoll and descriptors passed, all on this machine. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *serve(void *arg)
{
	int listener = *(int *)arg, peer;
	char line[64];
	ssize_t n;

	while ((peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		n = read(peer, line, sizeof(line));
		for (ssize_t i = 0; i < n / 2; i++) {
			char c = line[i];

			line[i] = line[n - 1 - i];
			line[n - 1 - i] = c;
		}
		if (write(peer, line, (size_t)n) < 0)
			perror("write");
		close(peer);
		if (n == 4)
			break;
	}
	return NULL;
}

static void ask(struct sockaddr *address, socklen_t len, const char *text)
{
	int fd = socket(address->sa_family, SOCK_STREAM, 0);
	char reply[64] = "";

	if (connect(fd, address, len) < 0 || write(fd, text, strlen(text)) < 0)
		perror("ask");
	else if (read(fd, reply, sizeof(reply) - 1) >= 0)
		printf("%s -> %s\n", text, reply);
	close(fd);
}

int main(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "door" };
	socklen_t len = sizeof(in);
	int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
	int one = 1, event, ep;
	pthread_t thread;

	setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	printf("%d\n", bind(tcp, (struct sockaddr *)&in, sizeof(in)));
	printf("%d\n", listen(tcp, 5));
	getsockname(tcp, (struct sockaddr *)&in, &len);
	pthread_create(&thread, NULL, serve, &tcp);
	ask((struct sockaddr *)&in, sizeof(in), "loopback");
	ask((struct sockaddr *)&in, sizeof(in), "stop");
	pthread_join(thread, NULL);

	printf("%d\n", bind(local, (struct sockaddr *)&un, sizeof(un)));
	printf("%d\n", listen(local, 5));
	pthread_create(&thread, NULL, serve, &local);
	ask((struct sockaddr *)&un, sizeof(un), "unix");
	pthread_join(thread, NULL);

	struct addrinfo *found = NULL, hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };

	if (getaddrinfo("127.0.0.1", "80", &hints, &found) == 0)
		printf("%s\n", inet_ntoa(((struct sockaddr_in *)found->ai_addr)->sin_addr));
	freeaddrinfo(found);

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
		return 1;
	event = eventfd(0, EFD_NONBLOCK);
	ep = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(ep, EPOLL_CTL_ADD, pair[1], &(struct epoll_event){ .events = EPOLLIN, .data.u32 = 1 });
	epoll_ctl(ep, EPOLL_CTL_ADD, event, &(struct epoll_event){ .events = EPOLLIN, .data.u32 = 2 });
	struct epoll_event events[4];

	printf("%d\n", epoll_wait(ep, events, 4, 0));
	eventfd_write(event, 5);
	printf("%d ", epoll_wait(ep, events, 4, -1));
	printf("%u\n", events[0].data.u32);
	if (write(pair[0], "x", 1) < 0)
		perror("write");
	struct pollfd polled = { pair[1], POLLIN, 0 };

	printf("%d ", poll(&polled, 1, 1000));
	printf("%d\n", polled.revents);
	printf("%d\n", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0 && (errno == EPERM || errno == EACCES));
	return 0;
}

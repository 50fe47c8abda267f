// hostile-test
// id: RES-108
// title: memory in queues of errors, in datagrams that are held back, and in keys, of many sockets
// class: resource-memory
// lang: c
// expect: contained
// severity: high
// limits: {"wall_s": 20, "memory_mb": 128, "pids": 32}
// checks: {"result": {"wall_ms_max": 25000}, "after": {"no_survivors_s": 2, "cleanup_ok": true}, "next_run_ok": true}
// bounds: eight processes of 400 sockets; stops at 300 MB
// why: sk_error_queue and a corked datagram are charged to no memory group
#define _GNU_SOURCE
#include <linux/net_tstamp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROCESSES = 8, SOCKETS = 400, STOP_MB = 300 };

static long available_mb(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[200];
    long kb = 0;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb / 1024;
}

// A control message, which no filter sees, asks for the same as a socket option.
static void send_timed(int s, char *bytes, size_t len)
{
	union {
		char bytes[CMSG_SPACE(sizeof(unsigned))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { bytes, len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SO_TIMESTAMPING;
	c->cmsg_len = CMSG_LEN(sizeof(unsigned));
	*(unsigned *)CMSG_DATA(c) = SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE;
	sendmsg(s, &msg, MSG_DONTWAIT);
}

static void add_keys(void)
{
	for (int i = 0; i < SOCKETS; i++) {
		int s = socket(AF_INET, SOCK_STREAM, 0);
		for (int k = 0; k < 1000; k++) {
			struct tcp_md5sig key = { .tcpm_keylen = 8, .tcpm_key = "12345678" };
			struct sockaddr_in *of = (void *)&key.tcpm_addr;
			of->sin_family = AF_INET;
			of->sin_addr.s_addr = htonl(0x0a000001 + k);
			if (setsockopt(s, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)) < 0)
				break;
		}
	}
}

static void fill(int way)
{
	int is_corked = way == 1;

	static char big[60000];
	struct sockaddr_in nobody = { .sin_family = AF_INET,
				      .sin_port = htons(9),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, size = 1 << 20;

	for (int i = 0; i < SOCKETS; i++) {
		int s = socket(AF_INET, SOCK_DGRAM, 0);
		if (s < 0)
			return;
		setsockopt(s, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
		setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
		connect(s, (void *)&nobody, sizeof(nobody));
		if (is_corked) {
			setsockopt(s, IPPROTO_UDP, UDP_CORK, &one, sizeof(one));
			send(s, big, sizeof(big), MSG_DONTWAIT);
			send(s, big, sizeof(big), MSG_MORE | MSG_DONTWAIT);
			continue;
		}
		for (int k = 0; way == 2 && k < 8; k++)
			send_timed(s, big, sizeof(big));
		for (int k = 0; way == 0 && k < 700; k++)
			send(s, big, 1400, MSG_DONTWAIT);
	}
}

int main(void)
{
    long before = available_mb(), most = 0;

    for (int p = 0; p < PROCESSES && most < STOP_MB; p++) {
        int ready[2];
        char byte = 0;

        if (pipe(ready) < 0 || fork() == 0) {
		if (p % 4 == 3)
			add_keys();
		else
			fill(p % 4);
		(void)!write(ready[1], &byte, 1);
		for (;;)
			pause();
        }
        (void)!read(ready[0], &byte, 1);
        long taken = before - available_mb();
        most = taken > most ? taken : most;
    }
    if (most > 200) // with a limit of 128; others are at work on this machine, too
        printf("ESCAPED: %ld MB of the host's memory\n", most);
    else
        printf("CONTAINED: %ld MB less on the host\n", most);
    fflush(stdout);
    return 0;
}

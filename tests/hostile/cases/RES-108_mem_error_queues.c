// hostile-test
// id: RES-108
// title: memory in queues of errors, and in datagrams that are held back, of many UDP sockets
// class: resource-memory
// lang: c
// expect: contained
// severity: high
// limits: {"wall_s": 20, "memory_mb": 128, "pids": 32}
// checks: {"result": {"wall_ms_max": 25000}, "after": {"no_survivors_s": 2, "cleanup_ok": true}, "next_run_ok": true}
// bounds: four processes of 400 sockets; stops at 300 MB
// why: sk_error_queue and a corked datagram are charged to no memory group
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, SOCKETS = 400, STOP_MB = 300 };

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

static void fill(int is_corked)
{
    static char big[60000];
    struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = htons(9),
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
        for (int k = 0; k < 700; k++)
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
            fill(p % 2);
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

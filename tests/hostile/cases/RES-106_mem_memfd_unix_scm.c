// hostile-test
// id: RES-106
// title: memory files that are open nowhere but in a socket's queue
// class: resource-memory
// lang: c
// expect: memory|contained|killed
// severity: high
// limits: {"memory_mb": 256, "wall_s": 10}
// checks: {"result": {"status_any": ["memory", "exited"]}, "next_run_ok": true, "after": {"no_survivors_s": 3}}
// bounds: 2 GiB
// why: neither mapped nor in any descriptor table
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <stdarg.h>
#include <string.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include <fcntl.h>
#include <time.h>
#include <sys/types.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/syscall.h>
static char eb[1900], sb[1900];
static void add(char *b, const char *f, va_list a) {
    size_t n = strlen(b);
    if (n > 1700) return;
    if (n) { strcpy(b + n, " | "); n += 3; }
    vsnprintf(b + n, 1890 - n, f, a);
}
static void __attribute__((unused)) esc(const char *f, ...) { va_list a; va_start(a, f); add(eb, f, a); va_end(a); }
static void __attribute__((unused)) surf(const char *f, ...) { va_list a; va_start(a, f); add(sb, f, a); va_end(a); }
static int __attribute__((unused)) done(const char *why) {
    if (sb[0]) printf("SURFACE: %s\n", sb);
    if (eb[0]) printf("ESCAPED: %s\n", eb); else printf("CONTAINED: %s\n", why);
    fflush(stdout);
    return 0;
}
/* run one probe in a child: 0 = the call succeeded, >0 = errno, <0 = killed by that signal */
static int __attribute__((unused)) child(long (*f)(void)) {
    fflush(stdout);
    pid_t p = fork();
    if (p < 0) return EAGAIN;
    if (!p) { alarm(3); errno = 0; long r = f(); _exit(r < 0 ? (errno ? errno : 250) : 0); }
    int st;
    while (waitpid(p, &st, 0) < 0 && errno == EINTR) {}
    return WIFSIGNALED(st) ? -WTERMSIG(st) : WEXITSTATUS(st);
}
static int __attribute__((unused)) blocked(int r) { return r < 0 || r == EPERM || r == ENOSYS || r == EACCES; }
#include <sys/mman.h>
#include <sys/socket.h>
int main(void){ size_t mb=0; int sv[2]; socketpair(AF_UNIX,SOCK_DGRAM,0,sv); for(int i=0;i<64;i++){ int f=syscall(319,"x",0); if(f<0) break; if(ftruncate(f,32<<20)<0) break; char*p=mmap(0,32<<20,3,MAP_SHARED,f,0); if(p==MAP_FAILED) break; memset(p,1,32<<20); munmap(p,32<<20);
 struct msghdr m={0}; char c[CMSG_SPACE(4)]={0}; struct iovec v={"x",1}; m.msg_iov=&v;m.msg_iovlen=1;m.msg_control=c;m.msg_controllen=sizeof c; struct cmsghdr*h=CMSG_FIRSTHDR(&m);h->cmsg_level=SOL_SOCKET;h->cmsg_type=SCM_RIGHTS;h->cmsg_len=CMSG_LEN(4);memcpy(CMSG_DATA(h),&f,4); if(sendmsg(sv[0],&m,MSG_DONTWAIT)<0) break; close(f); mb+=32; }
 if(mb>=1024) esc("%zu MB in memfds in flight",mb); return done("x"); }
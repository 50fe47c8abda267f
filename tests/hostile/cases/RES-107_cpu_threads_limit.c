// hostile-test
// id: RES-107
// title: thirty threads and processes use up the CPU time that one may have
// class: resource-cpu
// lang: c
// expect: timeout
// severity: high
// limits: {"cpu_s": 1, "wall_s": 10}
// checks: {"result": {"wall_ms_max": 4000}, "after": {"no_survivors_s": 2}, "next_run_ok": true}
// bounds: 10 s
// why: limits per process do not add up
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
#include <pthread.h>
static void*spin(void*a){for(volatile long i=0;;i++);return a;}
int main(void){ printf("DONE: x\n"); fflush(stdout); for(int i=0;i<20;i++){pthread_t t;pthread_create(&t,0,spin,0);} for(int i=0;i<10;i++) if(!fork()) spin(0); alarm(15); pause(); return 0;}
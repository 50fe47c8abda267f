// hostile-test
// id: CG-101
// title: lower the score by which the kernel picks whom to kill when the host is out of memory
// class: procfs-write
// lang: c
// expect: contained
// severity: medium
// bounds: own score only
// why: children of a root daemon may lower it down to the inherited minimum
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
static long score(void) { char b[16] = ""; int f = open("/proc/self/oom_score_adj", O_RDONLY); if (f < 0 || read(f, b, 15) < 0) return 0; close(f); return atol(b); }
int main(void) {
    long before = score();
    for (long want = before - 1; want >= -1000; want -= want > 0 && want % 100 ? want % 100 : 100) {
        char b[16]; int n = snprintf(b, sizeof b, "%ld", want), f = open("/proc/self/oom_score_adj", O_WRONLY);
        if (f >= 0 && write(f, b, n) == n && score() < before) esc("score %ld after %ld", score(), before);
        if (f >= 0) close(f);
    }
    return done("the score stays");
}

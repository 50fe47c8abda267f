// hostile-test
// id: RES-105
// title: page tables: one page read in each of many huge regions
// class: resource-memory
// lang: c
// expect: memory|contained|killed
// severity: high
// limits: {"memory_mb": 256, "wall_s": 12}
// checks: {"result": {"status_any": ["memory", "exited"]}, "next_run_ok": true}
// bounds: 400000 reads
// why: memory that no mapping seems to hold
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
int main(void){ size_t n=0; char*a=mmap(0,1ul<<44,3,MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE,-1,0); if(a==MAP_FAILED){perror("mmap");return done("refused");} volatile char x; for(size_t i=0;i<(1ul<<44);i+=1<<21){ x=a[i]; n++; if(n>400000) break;} (void)x; if(n*4096>(1ul<<30)) esc("%zu MB of page tables",n>>8); return done("x"); }
#pragma once
/*
 * sys - the system calls the engine makes, and a way to make any of them fail.
 *
 * The engine writes SYS(mount, a, b, c, d, e) for mount(a, b, c, d, e).  In a
 * production build the two are the same.  With VIAL_FAULT the nth call of the
 * whole process tree fails instead, so that a test can let every single one
 * fail once and look for what is left behind.
 *
 * Calls that libc does not wrap (or not on Debian 12) are wrapped here.
 */
#include <errno.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef VIAL_FAULT
bool sys_fault(const char *name); /* true, with errno set: this call shall fail */
#define SYS(name, ...) (sys_fault(#name) ? (__typeof__(name(__VA_ARGS__)))-1 : name(__VA_ARGS__))
#else
#define SYS(name, ...) name(__VA_ARGS__)
#endif

#ifndef SO_PASSRIGHTS /* Linux 6.16 */
#define SO_PASSRIGHTS 83
#endif

/* clone3() with a stack that is copied.  Containers' filters cannot see its flags, and pretend that
 * there is none: then clone() does, which knows all that matters of them. */
static inline pid_t sys_clone3(struct clone_args *args)
{
	pid_t pid = (pid_t)syscall(SYS_clone3, args, sizeof(*args));

	if (pid >= 0 || errno != ENOSYS || args->flags & CLONE_INTO_CGROUP)
		return pid;
	return (pid_t)syscall(SYS_clone, (uint32_t)args->flags | args->exit_signal, NULL,
			      args->flags & CLONE_PIDFD ? args->pidfd : args->parent_tid, NULL,
			      NULL);
}

#if defined(__x86_64__) && !defined(VIAL_SANITIZED) /* the sanitizers watch our stacks */
#define SYS_LENDS_MEMORY
#endif

/*
 * A child that has our memory and runs fn(arg) on the stack in `args`: no page table is copied,
 * no page afterwards, which is most of what a fork costs.  fn() never returns.  With CLONE_VFORK
 * this thread waits until the child has ended or exec'd, and it may touch what vfork()'s may.
 * Without, not even errno is its own: sys_bare() is what it may call.  Where memory cannot be
 * lent the child gets a copy, and we do not wait.
 */
static inline pid_t sys_clone3_lend(struct clone_args *args, void (*fn)(void *), void *arg)
{
#ifdef SYS_LENDS_MEMORY
	long ret;

	args->flags |= CLONE_VM;
	/* libc's syscall() would return on a stack that holds no return address. */
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[arg], %%rdi\n\t"
			 "call *%[fn]\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), [fn] "r"(fn),
			   [arg] "r"(arg)
			 : "rcx", "r11", "memory");
	if (ret < 0) {
		errno = (int)-ret;
		return -1;
	}
	return (pid_t)ret;
#else
	args->flags &= ~(uint64_t)CLONE_VFORK;
	args->stack = args->stack_size = 0;
	pid_t pid = sys_clone3(args);
	if (pid == 0)
		fn(arg);
	return pid;
#endif
}

/* A system call that answers with a negative error, and leaves errno alone. */
static inline long sys_bare(long nr, long a, long b, long c)
{
#ifdef SYS_LENDS_MEMORY
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
#else
	long ret = syscall(nr, a, b, c);
	return ret < 0 ? -errno : ret;
#endif
}

static inline int sys_openat2(int dir, const char *path, const struct open_how *how)
{
	return (int)syscall(SYS_openat2, dir, path, how, sizeof(*how));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_seccomp(unsigned op, unsigned flags, void *args)
{
	return (int)syscall(SYS_seccomp, op, flags, args);
}

static inline int sys_capset(void *header, const void *data)
{
	return (int)syscall(SYS_capset, header, data);
}

static inline int sys_landlock_create_ruleset(const void *attr, size_t size, uint32_t flags)
{
	return (int)syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

static inline int sys_landlock_add_rule(int ruleset_fd, int type, const void *attr)
{
	return (int)syscall(SYS_landlock_add_rule, ruleset_fd, type, attr, 0);
}

static inline int sys_landlock_restrict_self(int ruleset_fd, uint32_t flags)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset_fd, flags);
}

/* glibc's setuid family signals all threads; a cloned child has only itself. */
static inline int sys_setresuid(uid_t id)
{
	return (int)syscall(SYS_setresuid, id, id, id);
}

static inline int sys_seteuid(uid_t id)
{
	return (int)syscall(SYS_setresuid, -1, id, -1);
}

static inline int sys_setresgid(gid_t id)
{
	return (int)syscall(SYS_setresgid, id, id, id);
}

static inline int sys_setgroups(size_t n, const gid_t *groups)
{
	return (int)syscall(SYS_setgroups, n, groups);
}

/* For whoever works ahead of others, or clears away after them: it will interrupt nobody who runs
 * just because it woke up. */
static inline void sys_stand_back(void)
{
	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
}

/* Guests, and who works while others wait: like others again, though their makers stood back. */
static inline void sys_stand_up(void)
{
	if (sched_getscheduler(0) == SCHED_BATCH)
		(void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
}

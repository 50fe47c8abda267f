#include "engine/seccomp.h"
#include "test.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define HIGH_HALF    (0xdeadbeefull << 32)

/* Descriptors that attempts use. */
enum { FD_PTY = 200, FD_TCP, FD_UDP, FD_TCP6, FD_PIPE, FD_NONE = 250 };

/*
 * A call and what it must answer.  Arguments are such that a call which the
 * filter lets through by mistake does no harm and answers something else.
 */
struct attempt {
	const char *what;
	long nr;
	long args[6];
	int want; /* errno, or 0 */
};

/* clang-format off */
#define TRY(want_, name, ...)   { #name " " #__VA_ARGS__, SYS_##name, { __VA_ARGS__ }, want_ }
#define TRY_NR(want_, nr_, ...) { #nr_, nr_, { __VA_ARGS__ }, want_ }
/* clang-format on */

static long attempt_failed(const struct attempt *tries, size_t count, int *ret_got)
{
	for (size_t i = 0; i < count; i++) {
		const long *a = tries[i].args;

		errno = 0;
		if (syscall(tries[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]) >= 0)
			errno = 0;
		if (errno != tries[i].want) {
			*ret_got = errno;
			return (long)i;
		}
	}
	return -1;
}

static void open_targets(void)
{
	int pipe_fds[2];

	(void)dup2(posix_openpt(O_RDWR | O_NOCTTY), FD_PTY);
	(void)dup2(socket(AF_INET, SOCK_STREAM, 0), FD_TCP);
	(void)dup2(socket(AF_INET, SOCK_DGRAM, 0), FD_UDP);
	(void)dup2(socket(AF_INET6, SOCK_STREAM, 0), FD_TCP6);
	if (pipe(pipe_fds) == 0)
		(void)dup2(pipe_fds[0], FD_PIPE);
}

static void enter_filter(void)
{
	struct err e;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(&seccomp_guest, &e) < 0)
		_exit(125);
}

/* What a filtered child tells its parent. */
struct report {
	long row; /* the first that failed, or -1 */
	int got;
};

/* Exit status of a filtered child that tries all rows; 0 when every answer was right. */
static int try_all(const struct attempt *tries, size_t count, struct report *ret)
{
	struct report *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;
	pid_t pid;

	if (shared == MAP_FAILED)
		return -1;
	shared->row = -2;
	pid = fork();
	if (pid == 0) {
		open_targets();
		enter_filter();
		shared->row = attempt_failed(tries, count, &shared->got);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	*ret = *shared;
	(void)munmap(shared, sizeof(*shared));
	return status;
}

#define CHECK_TRIES(tries)                                                                         \
	do {                                                                                       \
		struct report r_;                                                                  \
		CHECK_INT(try_all(tries, ARRAY_LEN(tries), &r_), 0);                               \
		if (r_.row >= 0)                                                                   \
			STOP(TEST_FAIL, "%s: %s, want %s", (tries)[r_.row].what,                   \
			     strerrorname_np(r_.got), strerrorname_np((tries)[r_.row].want));      \
		CHECK_INT(r_.row, -1);                                                             \
	} while (0)

/* The exit status of `main`, run behind the filter. */
static int run_filtered(int (*main)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		enter_filter();
		_exit(main());
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

TEST(filters_exist_on_this_kernel)
{
	CHECK(seccomp_available());
	CHECK(seccomp_guest.len > 0 && seccomp_guest.len <= BPF_MAXINSNS);
}

TEST(a_filter_without_no_new_privs_is_an_error_for_an_ordinary_user)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e = { 0 };

		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		_exit(seccomp_install(&seccomp_guest, &e) == -1 && e.sys == EACCES ? 0 : 2);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

TEST(what_the_host_keeps_answers_eperm)
{
	static const struct attempt tries[] = {
		TRY(EPERM, mount, 0, 0, 0, 0, 0),
		TRY(EPERM, umount2, 0, 0),
		TRY(EPERM, pivot_root, 0, 0),
		TRY(EPERM, chroot, 0),
		TRY(EPERM, open_tree, -1, 0, 0),
		TRY(EPERM, move_mount, -1, 0, -1, 0, 0),
		TRY(EPERM, fsopen, 0, 0),
		TRY(EPERM, fsconfig, -1, 0, 0, 0, 0),
		TRY(EPERM, fsmount, -1, 0, 0),
		TRY(EPERM, fspick, -1, 0, 0),
		TRY(EPERM, mount_setattr, -1, 0, 0, 0, 0),
		TRY_NR(EPERM, 467 /* open_tree_attr */, -1, 0, 0, 0, 0),
		TRY(EPERM, unshare, 0),
		TRY(EPERM, unshare, CLONE_NEWUSER),
		TRY(EPERM, setns, -1, 0),
		TRY(EPERM, ptrace, 0x4206, 0, 0, 0),
		TRY(EPERM, process_vm_readv, 0, 0, 0, 0, 0, 0),
		TRY(EPERM, process_vm_writev, 0, 0, 0, 0, 0, 0),
		TRY(EPERM, kcmp, 0, 0, -1, 0, 0),
		TRY(EPERM, pidfd_getfd, -1, -1, 0),
		TRY(EPERM, add_key, 0, 0, 0, 0, 0),
		TRY(EPERM, request_key, 0, 0, 0, 0),
		TRY(EPERM, keyctl, 0, -3, 0),
		TRY(EPERM, bpf, 0, 0, 0),
		TRY(EPERM, perf_event_open, 0, 0, -1, -1, 0),
		TRY(EPERM, userfaultfd, -1),
		TRY(EPERM, fanotify_init, -1, 0),
		TRY(EPERM, fanotify_mark, -1, 0, 0, -1, 0),
		TRY(EPERM, name_to_handle_at, -1, 0, 0, 0, 0),
		TRY(EPERM, open_by_handle_at, -1, 0, 0),
		TRY(EPERM, quotactl, -1, 0, 0, 0),
		TRY(EPERM, quotactl_fd, -1, -1, 0, 0),
		TRY(EPERM, swapon, 0, -1),
		TRY(EPERM, swapoff, 0),
		TRY(EPERM, reboot, 0, 0, 0, 0),
		TRY(EPERM, kexec_load, 0, -1, 0, -1),
		TRY(EPERM, kexec_file_load, -1, -1, 0, 0, -1),
		TRY(EPERM, init_module, 0, 0, 0),
		TRY(EPERM, finit_module, -1, 0, -1),
		TRY(EPERM, delete_module, 0, 0),
		TRY(EPERM, acct, 1),
		TRY(EPERM, syslog, -1, 0, 0),
		TRY(EPERM, settimeofday, 1, 0),
		TRY(EPERM, clock_settime, -1, 0),
		TRY(EPERM, clock_adjtime, -1, 0),
		TRY(EPERM, adjtimex, 0),
		TRY(EPERM, sethostname, 0, -1),
		TRY(EPERM, setdomainname, 0, -1),
#ifdef __x86_64__
		TRY(EPERM, iopl, -1),
		TRY(EPERM, ioperm, -1, -1, 0),
#endif
	};

	CHECK_TRIES(tries);
}

TEST(what_has_a_fallback_answers_enosys)
{
	static const struct attempt tries[] = {
		TRY(ENOSYS, clone3, 0, 0),
		TRY(ENOSYS, io_uring_setup, 0, 0),
		TRY(ENOSYS, io_uring_enter, -1, 0, 0, 0, 0, 0),
		TRY(ENOSYS, io_uring_register, -1, 0, 0, 0),
		TRY(ENOSYS, io_setup, 1, 0),
		TRY(ENOSYS, vmsplice, -1, 0, 0, 0),
		TRY(EINVAL, sendfile, -1, -1, 0, 0),
		TRY(EINVAL, splice, -1, 0, -1, 0, 0, 0),
		TRY(ENOSYS, memfd_secret, -1),
		TRY(ENOSYS, process_madvise, -1, 0, 0, 0, 0),
		TRY(ENOSYS, sched_setattr, 0, 0, 0),
		TRY(ENOSYS, move_pages, 0, 0, 0, 0, 0, -1),
		TRY(ENOSYS, get_robust_list, 0, 0, 0), /* in no row */
		TRY_NR(ENOSYS, 451 /* cachestat */, -1, 0, 0, 0),
		TRY_NR(ENOSYS, 457 /* statmount: in no row */, 0, 0, 0, 0),
		TRY_NR(ENOSYS, 511, 0),
		TRY_NR(ENOSYS, 99999, 0),
		TRY_NR(ENOSYS, -1, 0),
#ifdef __x86_64__
		TRY(ENOSYS, modify_ldt, 0, 0, 0),
#endif
	};

	CHECK_TRIES(tries);
}

TEST(clone_makes_no_namespace_and_no_sibling)
{
	static const struct attempt tries[] = {
		TRY(EPERM, clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_NEWIPC | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_NEWCGROUP | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0),
		TRY(EPERM, clone, CLONE_PARENT | CLONE_VM | CLONE_FS, 0, 0, 0, 0),
		TRY(EPERM, clone, (long)(HIGH_HALF | CLONE_NEWUSER | SIGCHLD), 0, 0, 0, 0),
		/* reaches the kernel: CLONE_THREAD needs CLONE_SIGHAND */
		TRY(EINVAL, clone, CLONE_THREAD, 0, 0, 0, 0),
	};

	CHECK_TRIES(tries);
}

TEST(sockets_are_local_and_internet_only)
{
	static const struct attempt tries[] = {
		TRY(0, socket, AF_UNIX, SOCK_STREAM, 0),
		TRY(0, socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
		TRY(0, socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
		TRY(0, socket, AF_INET, SOCK_DGRAM, IPPROTO_UDP),
		TRY(0, socket, AF_INET6, SOCK_STREAM, IPPROTO_TCP),
		TRY(EAFNOSUPPORT, socket, AF_NETLINK, SOCK_RAW, 0),
		TRY(EAFNOSUPPORT, socket, AF_PACKET, SOCK_DGRAM, 0),
		TRY(EAFNOSUPPORT, socket, AF_VSOCK, SOCK_STREAM, 0),
		TRY(EAFNOSUPPORT, socket, AF_ALG, SOCK_SEQPACKET, 0),
		TRY(EAFNOSUPPORT, socket, AF_XDP, SOCK_RAW, 0),
		TRY(EAFNOSUPPORT, socket, AF_BLUETOOTH, SOCK_RAW, 0),
		TRY(EAFNOSUPPORT, socket, AF_UNSPEC, SOCK_STREAM, 0),
		TRY(EAFNOSUPPORT, socket, (long)(HIGH_HALF | AF_NETLINK), SOCK_DGRAM, 0),
		TRY(EAFNOSUPPORT, socketpair, AF_TIPC, SOCK_STREAM, 0, 0),
		TRY(EPERM, socket, AF_INET, SOCK_RAW, IPPROTO_ICMP),
		TRY(EPERM, socket, AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP),
		TRY(EPERM, socket, AF_INET, (long)(HIGH_HALF | SOCK_RAW), IPPROTO_UDP),
		TRY(ESOCKTNOSUPPORT, socket, AF_INET, SOCK_DCCP, 0),
		TRY(ESOCKTNOSUPPORT, socket, AF_INET, SOCK_SEQPACKET, 0),
		TRY(ESOCKTNOSUPPORT, socket, AF_INET6, SOCK_SEQPACKET | SOCK_NONBLOCK, 0),
		TRY(EPROTONOSUPPORT, socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP),
		TRY(EPROTONOSUPPORT, socket, AF_INET, SOCK_STREAM, 262 /* MPTCP */),
		TRY(EPROTONOSUPPORT, socket, AF_INET6, SOCK_DGRAM, 115 /* L2TP */),
	};

	CHECK_TRIES(tries);
}

TEST(socket_options_load_no_programs_and_no_rules)
{
	static const int one = 1;
	const struct attempt tries[] = {
		TRY(0, setsockopt, FD_TCP, SOL_SOCKET, SO_REUSEADDR, (long)&one, sizeof(one)),
		TRY(0, setsockopt, FD_TCP, IPPROTO_TCP, TCP_NODELAY, (long)&one, sizeof(one)),
		TRY(0, setsockopt, FD_TCP6, IPPROTO_IPV6, IPV6_V6ONLY, (long)&one, sizeof(one)),
		TRY(0, setsockopt, FD_TCP6, IPPROTO_IPV6, IPV6_RECVTCLASS, (long)&one, sizeof(one)),
		TRY(ENOPROTOOPT, setsockopt, FD_TCP, SOL_SOCKET, SO_ATTACH_FILTER, 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_TCP, SOL_SOCKET, SO_ATTACH_BPF, 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_TCP, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_TCP, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_TCP, SOL_SOCKET,
		    (long)(HIGH_HALF | SO_ATTACH_FILTER), 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_TCP, IPPROTO_TCP, TCP_ULP, 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_UDP, IPPROTO_UDP, 100 /* UDP_ENCAP */, 0, 0),
		/* on a closed descriptor: only the filter can answer before EBADF */
		TRY(ENOPROTOOPT, setsockopt, FD_NONE, IPPROTO_IP, 64 /* iptables */, 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_NONE, IPPROTO_IP, 1153 /* ipvs */, 0, 0),
		TRY(ENOPROTOOPT, setsockopt, FD_NONE, IPPROTO_IPV6, 64 /* ip6tables */, 0, 0),
		TRY(ENOPROTOOPT, getsockopt, FD_NONE, IPPROTO_IP, 65, 0, 0),
		TRY(EBADF, setsockopt, FD_NONE, IPPROTO_IP, IP_TTL, 0, 0),
		TRY(EBADF, getsockopt, FD_NONE, SOL_SOCKET, SO_ERROR, 0, 0),
	};

	CHECK_TRIES(tries);
}

TEST(ioctl_serves_programs_and_not_intruders)
{
	static int number;
	static char room[64];
	const struct attempt tries[] = {
		TRY(0, ioctl, FD_PTY, TCGETS, (long)room),
		TRY(0, ioctl, FD_PTY, TIOCGWINSZ, (long)room),
		TRY(0, ioctl, FD_PTY, TIOCGPTN, (long)&number),
		TRY(0, ioctl, FD_PTY, (long)(HIGH_HALF | TIOCGWINSZ), (long)room),
		TRY(0, ioctl, FD_PIPE, FIONREAD, (long)&number),
		TRY(0, ioctl, FD_PIPE, FIOCLEX, 0),
		TRY(EBADF, ioctl, FD_NONE, FICLONE, -1),
		TRY(EBADF, ioctl, FD_NONE, FS_IOC_GETFLAGS, 0),
		TRY(EBADF, ioctl, FD_NONE, SIOCGIFCONF, 0),
		TRY(EPERM, ioctl, FD_PTY, TIOCSTI, (long)" "),
		TRY(EPERM, ioctl, FD_PTY, (long)(1ull << 32 | TIOCSTI), (long)" "),
		TRY(EPERM, ioctl, FD_PTY, (long)(0xffffffffull << 32 | TIOCSTI), (long)" "),
		TRY(EPERM, ioctl, FD_PTY, TIOCLINUX, (long)room),
		TRY(EPERM, ioctl, FD_PTY, TIOCCONS, 0),
		TRY(EPERM, ioctl, FD_PTY, TIOCSETD, 0),
		/* a closed descriptor again */
		TRY(ENOTTY, ioctl, FD_NONE, SIOCSIFFLAGS, 0),
		TRY(ENOTTY, ioctl, FD_NONE, 0x89a0 /* SIOCBRADDBR */, 0),
		TRY(ENOTTY, ioctl, FD_NONE, FS_IOC_SETFLAGS, 0),
		TRY(ENOTTY, ioctl, FD_NONE, 0x4b4e /* KDSKBMODE and its like */, 0),
		TRY(EOPNOTSUPP, ioctl, FD_NONE, SIOCETHTOOL, 0),
	};

	CHECK_TRIES(tries);
}

TEST(a_process_changes_only_harmless_things_about_itself)
{
	const struct attempt tries[] = {
		TRY(0, prctl, PR_SET_NAME, (long)"renamed", 0, 0, 0),
		TRY(0, prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0),
		TRY(0, prctl, PR_SET_DUMPABLE, 1, 0, 0, 0),
		TRY(0, prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		TRY(0, prctl, PR_GET_SECCOMP, 0, 0, 0, 0),
		TRY(0, prctl, PR_SET_THP_DISABLE, 0, 0, 0, 0),
		TRY(EPERM, prctl, PR_SET_MM, -1, 0, 0, 0),
		TRY(EPERM, prctl, PR_SET_SECUREBITS, -1, 0, 0, 0),
		TRY(EPERM, prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		TRY(EPERM, prctl, (long)(HIGH_HALF | PR_SET_MM), -1, 0, 0, 0),
		TRY(EINVAL, prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0, 0, 0),
		TRY(EINVAL, prctl, 67 /* PR_SET_MEMORY_MERGE */, 0, 0, 0, 0),
		TRY(EINVAL, seccomp, SECCOMP_SET_MODE_FILTER, 0, 0),
		TRY(EINVAL, seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0),
		TRY(EFAULT, seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 0),
		TRY(0, personality, 0xffffffff),
		TRY(0, personality, PER_LINUX),
		TRY(EPERM, personality, ADDR_NO_RANDOMIZE),
		TRY(EPERM, personality, READ_IMPLIES_EXEC),
		TRY(EPERM, personality, (long)(HIGH_HALF | ADDR_NO_RANDOMIZE)),
		TRY(EPERM, sched_setscheduler, 0, SCHED_FIFO, 0),
		TRY(EPERM, sched_setscheduler, 0, SCHED_RR | SCHED_RESET_ON_FORK, 0),
		TRY(EINVAL, sched_setscheduler, 0, SCHED_BATCH,
		    0), /* no parameters: the kernel's answer */
		TRY(EINVAL, sched_setscheduler, 0, SCHED_IDLE | SCHED_RESET_ON_FORK, 0),
	};

	CHECK_TRIES(tries);
}

TEST(device_nodes_cannot_be_made)
{
	/* in a directory that does not exist: ENOENT is the kernel's answer */
	static const char name[] = "/nonexistent/node";
	const struct attempt tries[] = {
		TRY(ENOENT, mknodat, AT_FDCWD, (long)name, S_IFIFO | 0600, 0),
		TRY(ENOENT, mknodat, AT_FDCWD, (long)name, S_IFREG | 0600, 0),
		TRY(ENOENT, mknodat, AT_FDCWD, (long)name, 0600, 0),
		TRY(EPERM, mknodat, AT_FDCWD, (long)name, S_IFCHR | 0600, 0x103),
		TRY(EPERM, mknodat, AT_FDCWD, (long)name, S_IFBLK | 0600, 0x800),
		TRY(EPERM, mknodat, AT_FDCWD, (long)name, S_IFCHR, 0),
		/* the kernel takes 16 bits of the mode: the rest must not hide the type */
		TRY(EPERM, mknodat, AT_FDCWD, (long)name, 0x70000 | S_IFCHR, 0x103),
#ifdef __x86_64__
		TRY(ENOENT, mknod, (long)name, S_IFIFO | 0600, 0),
		TRY(EPERM, mknod, (long)name, S_IFCHR | 0600, 0x103),
		TRY(EPERM, mknod, (long)name, (long)(HIGH_HALF | S_IFBLK), 0x800),
#endif
	};

	CHECK_TRIES(tries);
}

TEST(huge_pages_of_the_host_are_not_for_guests)
{
	enum { ANON = MAP_PRIVATE | MAP_ANONYMOUS };
	static const struct attempt tries[] = {
		TRY(0, mmap, 0, 4096, PROT_READ, ANON, -1, 0),
		/* of length 0: the kernel would say EINVAL */
		TRY(ENOMEM, mmap, 0, 0, PROT_READ, ANON | MAP_HUGETLB, -1, 0),
		TRY(ENOMEM, memfd_create, 0, MFD_HUGETLB | MFD_CLOEXEC),
		TRY(ENOMEM, shmget, IPC_PRIVATE, 0, IPC_CREAT | SHM_HUGETLB),
		TRY(EFAULT, memfd_create, 0, MFD_CLOEXEC),
		TRY(EINVAL, shmget, IPC_PRIVATE, 0, IPC_CREAT | 0600),
	};

	CHECK_TRIES(tries);
}

TEST(sync_pretends)
{
	const struct attempt tries[] = {
		TRY(0, sync, 0),
		TRY(0, syncfs, FD_NONE), /* the kernel would say EBADF */
		TRY(EBADF, fsync, FD_NONE),
	};

	CHECK_TRIES(tries);
}

#ifdef __x86_64__
static int call_i386(void)
{
	long ret;

	/* getpid of the 32-bit table */
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return ret > 0;
}

static int call_x32(void)
{
	return syscall(0x40000000L | SYS_getpid) == -1 && errno == ENOSYS ? 0 : 1;
}

TEST(foreign_abis_are_refused)
{
	int status = run_filtered(call_i386);

	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSYS);
	CHECK_INT(run_filtered(call_x32), 0);
}
#endif

static void *add_one(void *number)
{
	*(int *)number += 1;
	return NULL;
}

static int thread_fork_spawn(void)
{
	char *const argv[] = { (char *)"true", NULL };
	int number = 1, status = -1;
	pthread_t thread;
	pid_t pid;

	if (pthread_create(&thread, NULL, add_one, &number) || pthread_join(thread, NULL) ||
	    number != 2)
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(7);
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
		return 2;
	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) ||
	    waitpid(pid, &status, 0) != pid)
		return 3;
	return status;
}

TEST(threads_forks_and_spawns_fall_back_from_clone3)
{
	CHECK_INT(run_filtered(thread_fork_spawn), 0);
}

static int exec_keeps_filter(void)
{
	(void)execl("/bin/sh", "sh", "-c", "grep -q '^Seccomp:[[:space:]]*2$' /proc/self/status",
		    NULL);
	return 127;
}

TEST(the_filter_survives_execve)
{
	CHECK_INT(run_filtered(exec_keeps_filter), 0);
}

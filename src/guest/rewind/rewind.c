#include "guest/rewind/rewind.h"

#include "base/own.h"
#include "guest/rewind/copies.h"
#include "guest/rewind/forker.h"
#include "guest/rewind/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PUBLIC __attribute__((visibility("default")))

enum { MESSAGE_MAX = 16384, REASON_SIZE = 160 };

static int channel = -1;
static unsigned undo_max = 1;
static char reason[REASON_SIZE]; /* why the step cannot be taken back; empty: it can */
static bool is_off;              /* there never are any copies */
static const char cannot[] = "this interpreter cannot be copied";
static uint64_t covered_by; /* the serial of its copy */

/* ---- messages -------------------------------------------------------------------------- */

struct message {
	char text[MESSAGE_MAX];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct message *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(m->text + m->len, sizeof(m->text) - m->len, fmt, args);
	va_end(args);
	if (n > 0)
		m->len += (size_t)n;
	if (m->len >= sizeof(m->text))
		m->len = sizeof(m->text) - 1;
}

/* A channel that nobody reads: the driver will find out. */
static void send_message(const struct message *m)
{
	for (size_t done = 0; done < m->len;) {
		ssize_t n = send(channel, m->text + done, m->len - done, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		done += (size_t)n;
	}
}

static void refuse(uint64_t id, const char *why)
{
	struct message m = { .len = 0 };

	add(&m,
	    "{\"op\":\"result\",\"id\":%llu,\"exception\":{\"type\":\"RuntimeError\","
	    "\"module\":\"builtins\",\"message\":\"%s\",\"traceback\":\"RuntimeError: %s\\n\","
	    "\"line\":null,\"frames\":[]}}\n",
	    (unsigned long long)id, why, why);
	send_message(&m);
}

/* Said by whoever goes on. */
static void say_taken_back(bool are_files_back)
{
	struct message m = { .len = 0 };
	int status = shared->status;

	add(&m, "{\"op\":\"result\",\"id\":%llu,\"rolled_back\":true",
	    (unsigned long long)shared->number);
	if (!are_files_back)
		add(&m, ",\"files_kept\":true");
	if (shared->state == ACTIVE_STEP && WIFSIGNALED(status))
		add(&m, ",\"signal\":%d", WTERMSIG(status));
	else if (shared->state == ACTIVE_STEP)
		add(&m, ",\"exit_code\":%d", WEXITSTATUS(status));
	add(&m, "}\n");
	shared->state = ACTIVE_IDLE;
	send_message(&m);
}

static void say_checkpoints(uint64_t id, const char *only)
{
	struct message m = { .len = 0 };
	unsigned count = 0;

	add(&m, "{\"op\":\"result\",\"id\":%llu,\"checkpoints\":[", (unsigned long long)id);
	for (size_t i = 0; i < COPIES_MAX; i++) {
		const struct copy *copy = &shared->all[i];
		if (!copy->pid || !copy->name[0] || (only && strcmp(only, copy->name) != 0))
			continue;
		add(&m, "%s{\"name\":\"%s\",\"memory\":%llu,\"files\":%llu}", count++ ? "," : "",
		    copy->name, (unsigned long long)copy_memory(copy),
		    (unsigned long long)copy->files);
	}
	add(&m, "]}\n");
	send_message(&m);
}

/* ---- steps ----------------------------------------------------------------------------- */

static void set_reason(const char *why)
{
	(void)snprintf(reason, sizeof(reason), "unavailable: %s", why);
}

/* Processes of the program's are not copied, and what one that goes on thinks of them is wrong. */
static bool has_children(void)
{
	siginfo_t info;
	char path[64], text[4096];

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	for (char *at = text, *end; *at; at = end) {
		long pid = strtol(at, &end, 10);
		if (end == at)
			break;
		if (copy_is_alive((pid_t)pid))
			return true;
	}
	return false;
}

/* In a copy that goes on. */
static int go_on(void)
{
	reason[0] = '\0';
	covered_by = 0;
	say_taken_back(snapshot_restore());
	return 1;
}

PUBLIC int vial_rewind_begin(unsigned long long step, const char *why)
{
	bool is_copy = false;

	shared->number = step;
	shared->state = ACTIVE_STEP;
	reason[0] = '\0';
	if (why || is_off)
		set_reason(why ? why : cannot);
	else if (has_children())
		set_reason("child processes are running");
	if (!reason[0]) {
		snapshot_take();
		const struct copy *copy = copies_add("", &is_copy);
		if (is_copy)
			return go_on();
		covered_by = copy ? copy->serial : 0;
		if (!copy)
			set_reason(strerror(errno));
	}
	if (reason[0])
		copies_trim(0); /* it would be taken back together with those before */
	return 0;
}

PUBLIC int vial_rewind_is_covered(void)
{
	return !reason[0] && copies_newest() != NULL;
}

PUBLIC const char *vial_rewind_done(void)
{
	const struct copy *newest = copies_newest();

	shared->state = ACTIVE_IDLE;
	if (!reason[0] && (!newest || newest->serial != covered_by)) {
		set_reason("its memory was needed");
		copies_trim(0);
	}
	return reason[0] ? reason : NULL;
}

PUBLIC void vial_rewind_trim(void)
{
	copies_trim(undo_max);
}

/* ---- what else is asked ---------------------------------------------------------------- */

static int undo(uint64_t id, unsigned count)
{
	if (count == 0 || copies_count(false) < count) {
		refuse(id, copies_count(false)
				   ? "there are not so many steps that could be taken back"
				   : "there is no step that could be taken back");
		return 0;
	}
	shared->number = id;
	shared->undo = count;
	shared->state = ACTIVE_UNDO;
	_exit(0);
}

static int restore(uint64_t id, const char *name)
{
	const struct copy *copy = name ? copies_named(name) : NULL;

	if (!copy) {
		refuse(id, "there is no such checkpoint, or no longer");
		return 0;
	}
	shared->number = id;
	shared->wanted = copy->pid;
	shared->state = ACTIVE_RESTORE;
	_exit(0);
}

static int checkpoint(uint64_t id, const char *name, const char *why)
{
	bool is_copy = false;

	struct copy *old = copies_named(name);
	if (why || is_off || has_children()) {
		refuse(id, why ? why : is_off ? cannot : "child processes are running");
		return 0;
	}
	if (!old && copies_count(true) >= CHECKPOINTS_MAX) {
		refuse(id, "there are 16 checkpoints already");
		return 0;
	}
	if (old)
		copies_drop(old);
	snapshot_take();
	shared->number = 0;
	const struct copy *copy = copies_add(name, &is_copy);
	if (is_copy)
		return go_on();
	if (copy)
		say_checkpoints(id, name);
	else
		refuse(id, strerror(errno));
	return 0;
}

static int forget(uint64_t id, const char *name)
{
	struct copy *copy = copies_named(name);

	if (!copy) {
		refuse(id, "there is no such checkpoint, or no longer");
		return 0;
	}
	say_checkpoints(id, name);
	copies_drop(copy);
	return 0;
}

PUBLIC int vial_rewind_order(const char *op, unsigned long long id, const char *name,
			     unsigned count, const char *why)
{
	if (strcmp(op, "undo") == 0)
		return undo(id, count);
	if (strcmp(op, "checkpoints") == 0) {
		say_checkpoints(id, NULL);
		return 0;
	}
	if (!name || !name[0] || strlen(name) >= NAME_SIZE) {
		refuse(id, "a checkpoint has a name");
		return 0;
	}
	if (strcmp(op, "checkpoint") == 0)
		return checkpoint(id, name, why);
	return strcmp(op, "restore") == 0 ? restore(id, name) : forget(id, name);
}

PUBLIC void vial_rewind_start(int fd, unsigned undo_steps, unsigned long long files_max)
{
	channel = fd;
	undo_max = undo_steps < UNDO_MAX ? undo_steps : UNDO_MAX;
	is_off = snapshot_start(files_max) < 0 || copies_start(false) < 0;
}

PUBLIC void vial_rewind_restart(void)
{
	reason[0] = '\0';
	covered_by = 0;
	if (is_off)
		return;
	snapshot_forget();
	is_off = copies_start(true) < 0;
}

PUBLIC void vial_rewind_await(int fd)
{
	forker_await(fd);
}

#include "keeper/reload.h"

#include "keeper/keeper.h"
#include "keeper/notify.h"
#include "keeper/serve.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { TEXT_MAX = 256 << 10 };

DEFINE_CLEANUP(struct config *, config_free)

/* ---- what is in effect -------------------------------------------------------------------- */

int reload_settle(struct config *config, const struct serve_options *options, struct err *e)
{
	const char *key;

	if (config_environment(config, e) < 0)
		return -1;
	for (size_t i = 0; i < options->flag_count; i++) {
		const struct serve_flag *f = &options->flags[i];
		if (config_set(config, f->key, f->value, f->flag, e) < 0)
			return err_context(e, "%s", f->flag);
	}
	return settings_check(&key, config->server, e);
}

static int open_file(const char *path, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.160s: not a file", path);
	return take_fd(&fd);
}

static int write_text(const struct config *config, struct err *e)
{
	auto_close int fd = memfd_create("settings", MFD_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);

	config_write(&text, config);
	if (text.dropped)
		return err_set(e, ERR_LIMIT, "settings: more than %d KiB", TEXT_MAX >> 10);
	if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len ||
	    lseek(fd, 0, SEEK_SET) != 0)
		return err_sys(e, "settings");
	return take_fd(&fd);
}

/* The file of settings, and those that they name; returns how many, or -1. */
static int open_files(int fds[WIRE_FDS_MAX], const struct config *config, struct err *e)
{
	int count = 0;

	fds[count] = write_text(config, e);
	if (fds[count++] < 0)
		return -1;
	for (size_t i = 0; i < SETTINGS; i++) {
		const char *path = config->settings.all[i].text;

		if (setting_rows[i].kind != KIND_FILE || !path[0])
			continue;
		fds[count] = count < WIRE_FDS_MAX ? open_file(path, e)
						  : err_set(e, ERR_BUG, "too many files");
		if (fds[count] >= 0) {
			count++;
			continue;
		}
		while (count > 0)
			(void)close(fds[--count]);
		return err_context(e, "%s", setting_rows[i].key);
	}
	return count;
}

static int tell(struct reload *r, const struct config *config, struct err *e)
{
	const struct wire_msg msg = { .kind = WIRE_SETTINGS };
	int fds[WIRE_FDS_MAX];
	int count = open_files(fds, config, e);

	if (count < 0)
		return -1;
	int sent = wire_send(r->channel, &msg, fds, (size_t)count, e);
	while (count > 0)
		(void)close(fds[--count]);
	return sent;
}

/* ---- again -------------------------------------------------------------------------------- */

static bool is_same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool languages_are_same(const struct config *a, const struct config *b)
{
	bool same = a->languages_count == b->languages_count;

	for (unsigned i = 0; same && i < a->languages_count; i++) {
		const struct config_language *x = &a->languages[i], *y = &b->languages[i];

		same = is_same(x->name, y->name) && is_same(x->command, y->command) &&
		       x->mounts_count == y->mounts_count;
		for (unsigned m = 0; same && m < x->mounts_count; m++)
			same = is_same(x->mounts[m], y->mounts[m]);
	}
	return same;
}

static bool lists_are_same(char *const *a, unsigned a_count, char *const *b, unsigned b_count)
{
	bool same = a_count == b_count;

	for (unsigned i = 0; same && i < a_count; i++)
		same = is_same(a[i], b[i]);
	return same;
}

static bool egress_is_same(const struct config_egress *a, const struct config_egress *b)
{
	return lists_are_same(a->allow, a->allow_count, b->allow, b->allow_count) &&
	       lists_are_same(a->usual, a->usual_count, b->usual, b->usual_count) &&
	       lists_are_same(a->resolvers, a->resolvers_count, b->resolvers, b->resolvers_count) &&
	       a->connections == b->connections && is_same(a->bytes, b->bytes) &&
	       is_same(a->idle, b->idle) && is_same(a->lifetime, b->lifetime);
}

static bool quotas_are_same(const struct quotas_text *a, const struct quotas_text *b)
{
#define QUOTA(field, key, kind, def, min, max, doc)                                                \
	if (!is_same(a->field, b->field))                                                          \
		return false;
#include "lib/quotas.def"
#undef QUOTA
	return true;
}

static bool tenants_are_same(const struct config_said *a, const struct config_said *b)
{
	bool same = a->tenants_count == b->tenants_count;

	for (unsigned i = 0; same && i < a->tenants_count; i++) {
		const struct config_tenant *x = &a->tenants[i], *y = &b->tenants[i];
		const struct config_hosts *p = &x->egress, *q = &y->egress;

		same = is_same(x->name, y->name) && quotas_are_same(&x->quotas, &y->quotas) &&
		       lists_are_same(p->allow, p->allow_count, q->allow, q->allow_count) &&
		       lists_are_same(p->usual, p->usual_count, q->usual, q->usual_count);
	}
	return same;
}

/* What has another value now, and will have it only after a start; the old one stays. */
static int keep_until_start(struct buf *names, struct reload *r, struct config *next, struct err *e)
{
	const struct config *first = r->first, *now = r->now ? r->now : first;
	const struct {
		const char *name;
		bool is_other;
	} others[] = {
		{ "network", first->network.allow_host != next->network.allow_host },
		{ "languages", !languages_are_same(first, next) },
		{ "cgroup", !is_same(first->cgroup, next->cgroup) },
		{ "cache", !is_same(first->cache, next->cache) },
		{ "environments", !is_same(first->environments, next->environments) },
		{ "uid_base", first->uid_base != next->uid_base },
		{ "egress", !egress_is_same(&first->egress, &next->egress) },
		{ "quotas", !quotas_are_same(&first->said.quotas, &next->said.quotas) },
		{ "tenants", !tenants_are_same(&first->said, &next->said) },
	};

	for (size_t i = 0; i < SETTINGS; i++) {
		const struct setting *had = &now->settings.all[i];

		if (setting_rows[i].is_live || is_same(had->text, next->settings.all[i].text))
			continue;
		buf_printf(names, "%s%s", names->len ? ", " : "", setting_rows[i].key);
		if (settings_set(&next->settings, setting_rows[i].key, had->text, had->origin, e) <
		    0)
			return -1;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].is_other)
			buf_printf(names, "%s%s", names->len ? ", " : "", others[i].name);
	return 0;
}

static void over(struct reload *r, const struct err *failed)
{
	if (failed)
		keeper_say(SAY_ERROR, "reload: %s; the old configuration stays", failed->msg);
	else
		keeper_say(SAY_INFO, "the configuration was read again");
	notify("READY=1\nSTATUS=%s", failed ? failed->msg : "running");
	if (r->is_again) {
		r->is_again = false;
		reload_now(r);
	}
}

static int begin(struct reload *r, struct err *e)
{
	AUTO(config_freep) struct config *next = NULL;
	auto_buf struct buf names = BUF_INIT(256);

	if (config_load(&next, r->options->config, e) < 0 ||
	    reload_settle(next, r->options, e) < 0 || keep_until_start(&names, r, next, e) < 0 ||
	    tell(r, next, e) < 0)
		return -1;
	if (names.len)
		keeper_say(SAY_WARN, "reload: only a restart changes %s", buf_str(&names));
	r->next = take_ptr(&next);
	return 0;
}

void reload_now(struct reload *r)
{
	struct err e;

	if (r->next) {
		r->is_again = true;
		return;
	}
	notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, loop_now());
	if (begin(r, &e) < 0)
		over(r, &e);
}

/* ---- the channel -------------------------------------------------------------------------- */

static void applied(struct reload *r, const struct err *failed)
{
	bool is_bad = failed->code != ERR_NONE;

	if (!r->next)
		return;
	config_free(is_bad ? r->next : r->now);
	if (!is_bad) {
		r->now = r->next;
		keeper_say_as(r->now->server->log_format);
	}
	r->next = NULL;
	over(r, is_bad ? failed : NULL);
}

static void on_message(struct watch *w, uint32_t events)
{
	struct reload *r = holder_of(w, struct reload, watch);
	int fds[WIRE_FDS_MAX];
	struct wire_msg msg;
	size_t fd_count;
	struct err e;

	(void)events;
	if (wire_receive(w->fd, &msg, fds, &fd_count, &e) < 0) {
		if (e.code != ERR_BUSY) /* the server ends: others will hear of that */
			loop_unwatch(r->loop, w);
		return;
	}
	while (fd_count > 0)
		(void)close(fds[--fd_count]);
	if (msg.kind == WIRE_PONG) {
		r->is_alive = true;
		notify("WATCHDOG=1");
	} else if (msg.kind == WIRE_APPLIED) {
		msg.failed.msg[sizeof(msg.failed.msg) - 1] = '\0';
		applied(r, &msg.failed);
	}
}

/* Both loops are alive when the server's answer has come round: only then systemd hears of it. */
static void on_beat(struct timer *t)
{
	struct reload *r = holder_of(t, struct reload, beat);
	const struct wire_msg ping = { .kind = WIRE_PING };
	struct err e;

	/* One at a time: a server that does not answer shall not find a heap of them. */
	if (r->is_alive && wire_send(r->channel, &ping, NULL, 0, &e) == 0)
		r->is_alive = false;
	(void)!loop_set_timer(r->loop, t, notify_watchdog_us() / 4, &e);
}

int reload_open(struct reload *r, int *ret_server_end, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "channel");
	r->channel = pair[0];
	*ret_server_end = pair[1];
	return tell(r, r->first, e);
}

int reload_watch(struct reload *r, struct err *e)
{
	r->watch = (struct watch){ .fd = r->channel, .on_ready = on_message };
	r->beat.on_due = on_beat;
	r->is_alive = true;
	if (notify_watchdog_us() && loop_set_timer(r->loop, &r->beat, 0, e) < 0)
		return -1;
	return loop_watch(r->loop, &r->watch, EPOLLIN, e);
}

void reload_done(struct reload *r)
{
	config_free(r->now);
	config_free(r->next);
	if (r->channel >= 0)
		(void)close(r->channel);
}

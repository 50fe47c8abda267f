#include "server/setup.h"

#include "base/own.h"
#include "keeper/wire.h"
#include "lib/host.h"
#include "server/logged.h"
#include "server/tls.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum {
	TEXT_MAX = 1 << 20,
	DESCRIPTORS_OF_OURS = 256, /* beside those of connections and sandboxes */
	DESCRIPTORS_PER_BOX = 16,
	CONNECTIONS_MIN = 16,
};

DEFINE_CLEANUP(struct config *, config_free)

struct files {
	int of[SETTINGS]; /* of the kind FILE, borrowed; -1: has no value */
};

/* ---- numbers ---------------------------------------------------------------------------- */

/* How many connections our descriptors are enough for. */
static uint64_t room_for_connections(const struct config_server *server)
{
	uint64_t ours = DESCRIPTORS_OF_OURS + DESCRIPTORS_PER_BOX * server->max;
	struct rlimit files = { 1024, 1024 };

	(void)getrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur > ours + CONNECTIONS_MIN ? files.rlim_cur - ours : CONNECTIONS_MIN;
}

void setup_http(struct http_options *ret, const struct server *s)
{
	const struct config_server *server = s->host->config->server;
	uint64_t room = room_for_connections(server);

	ret->connections_max = (unsigned)(server->connections < room ? server->connections : room);
	ret->per_address_max = (unsigned)server->connections_per_address;
	ret->bodies_max = server->body_memory;
	ret->pending_max = server->stream_memory;
	ret->idle_ms = (unsigned)server->idle_timeout;
	ret->patience_ms = (unsigned)server->client_timeout;
	ret->hosts = &server->hosts;
}

/* ---- files ------------------------------------------------------------------------------ */

static void burn(struct buf *text)
{
	if (text->data)
		explicit_bzero(text->data, text->cap);
	buf_done(text);
}

/* What the settings name and bring with them, read and checked, and not in effect yet. */
struct secrets {
	struct tls_pair tls; /* empty: none was named */
	char *relay_key;     /* NULL: likewise */
};

static void secrets_done(struct secrets *found)
{
	tls_pair_done(&found->tls);
	relay_key_free(found->relay_key);
}

static int read_tls(struct tls_pair *ret, const struct files *f, struct err *e)
{
	struct buf certificate = BUF_INIT(TEXT_MAX), key = BUF_INIT(TEXT_MAX);
	int loaded = 0;

	if (f->of[SETTING_tls_certificate] < 0 || f->of[SETTING_tls_key] < 0)
		return 0;
	if (buf_add_fd(&certificate, f->of[SETTING_tls_certificate], e) < 0)
		loaded = err_context(e, "tls_certificate");
	else if (buf_add_fd(&key, f->of[SETTING_tls_key], e) < 0)
		loaded = err_context(e, "tls_key");
	else
		loaded = tls_read(ret, buf_str(&certificate), buf_str(&key), e);
	buf_done(&certificate);
	burn(&key);
	return loaded;
}

static int read_relay_key(char **ret, const struct files *f, struct err *e)
{
	struct buf key = BUF_INIT(TEXT_MAX);

	if (f->of[SETTING_relay_key] < 0)
		return 0;
	int loaded = buf_add_fd(&key, f->of[SETTING_relay_key], e);
	loaded = loaded < 0 ? err_context(e, "relay_key")
			    : relay_key_read(ret, buf_str(&key), e);
	burn(&key);
	return loaded;
}

/* ---- what came -------------------------------------------------------------------------- */

/* Which descriptor is which follows from the settings, so these are read first, on trial. */
static int sort_files(struct files *ret, const struct config *config, const int *fds, size_t count)
{
	size_t next = 1;

	for (size_t i = 0; i < SETTINGS; i++)
		if (setting_rows[i].kind == KIND_FILE && config->settings.all[i].text[0])
			ret->of[i] = next < count ? fds[next++] : -1;
	return next == count ? 0 : -1;
}

static void trade(struct config *now, struct config *next)
{
	struct config_limits limits = now->limits;
	struct settings settings = now->settings;

	now->limits = next->limits;
	now->settings = next->settings;
	next->limits = limits;
	next->settings = settings;
}

/* From here on nothing can fail. */
static void apply(struct server *s, struct config *next, const struct limits *limits,
		  struct secrets *found)
{
	struct vial *host = s->host;
	struct err ignored;

	if (found->tls.certificate) /* who listens for TLS does so until the end */
		tls_use(&found->tls);
	tenants_use_relay_key(&s->tenants, take_ptr(&found->relay_key));
	trade(host->config, next);
	host->limits = *limits;
	if (s->http) { /* not at the start */
		(void)!logged_setup(&s->log, host->config->server, &ignored);
		struct http_options options = http_options(s->http);
		setup_http(&options, s);
		http_adjust(s->http, &options);
		s->tenants.room.max = host->config->server->answer_memory;
	}
}

/* All or nothing: what can fail comes before what is changed. */
static int take(struct server *s, const int *fds, size_t count, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	AUTO(config_freep) struct config *next = NULL;
	AUTO(secrets_done) struct secrets found = { 0 };
	struct files files;
	struct limits limits;

	memset(&files, -1, sizeof(files));
	if (count < 1)
		return err_set(e, ERR_BUG, "settings: no descriptor");
	if (buf_add_fd(&text, fds[0], e) < 0 || config_parse(&next, "", 0, e) < 0)
		return err_context(e, "settings");
	if (config_read(next, buf_str(&text), e) < 0)
		return -1;
	if (sort_files(&files, next, fds, count) < 0)
		return err_set(e, ERR_BUG, "settings: files are missing");
	if (config_limits(&limits, next, e) < 0 || read_tls(&found.tls, &files, e) < 0 ||
	    read_relay_key(&found.relay_key, &files, e) < 0)
		return -1;
	apply(s, next, &limits, &found);
	return 0;
}

static int receive(struct setup *setup, struct wire_msg *msg, struct err *e)
{
	struct err failed = { .code = ERR_NONE };
	int fds[WIRE_FDS_MAX];
	size_t count;

	if (wire_receive(setup->watch.fd, msg, fds, &count, e) < 0)
		return -1;
	if (msg->kind == WIRE_SETTINGS)
		(void)!take(setup->server, fds, count, &failed);
	while (count > 0)
		(void)close(fds[--count]);
	*e = failed;
	return failed.code == ERR_NONE ? 0 : -1;
}

int setup_first(struct setup *setup, struct err *e)
{
	struct pollfd waits = { setup->watch.fd, POLLIN, 0 };
	struct wire_msg msg = { .kind = WIRE_PING };

	while (poll(&waits, 1, -1) < 0 && errno == EINTR)
		;
	if (receive(setup, &msg, e) < 0)
		return -1;
	return msg.kind == WIRE_SETTINGS ? 0 : err_set(e, ERR_BUG, "no settings came");
}

static void on_message(struct watch *w, uint32_t events)
{
	struct setup *setup = holder_of(w, struct setup, watch);
	struct wire_msg msg = { .kind = WIRE_ARM }, answer = { .kind = WIRE_PONG };
	struct err e = { .code = ERR_NONE };

	(void)events;
	if (receive(setup, &msg, &e) < 0 && msg.kind != WIRE_SETTINGS) {
		if (e.code != ERR_BUSY) /* the keeper is gone; so will we be */
			loop_unwatch(setup->server->loop, w);
		return;
	}
	if (msg.kind == WIRE_SETTINGS) {
		answer.kind = WIRE_APPLIED;
		answer.failed = e;
	}
	(void)!wire_send(w->fd, &answer, NULL, 0, &e);
}

int setup_watch(struct setup *setup, struct err *e)
{
	setup->watch.on_ready = on_message;
	return loop_watch(setup->server->loop, &setup->watch, EPOLLIN, e);
}

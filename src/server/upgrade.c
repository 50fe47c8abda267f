/*
 * upgrade - connections that become something else.
 */
#include "base/own.h"
#include "server/http_impl.h"

static void on_upgrade(void *arg, struct MHD_Connection *mhd, void *state, const char *early,
		       size_t early_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct exchange *x = arg;

	(void)mhd;
	(void)state;
	x->upgraded = handle;
	conn_wait(x->conn);
	if (x->is_gone)
		exchange_hang_up(x);
	else
		x->on_taken(fd, early, early_len, x->on_gone_arg);
}

void exchange_upgrade(struct exchange *x, const char *protocol,
		      void (*on_taken)(int fd, const char *early, size_t len, void *arg), void *arg)
{
	struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgrade, x);

	x->on_taken = on_taken;
	x->on_gone_arg = arg;
	if (response && MHD_add_response_header(response, "Upgrade", protocol) != MHD_YES)
		MHD_destroy_response(take_ptr(&response));
	exchange_respond_bare(x, 101, response);
}

/* TCP throws away what it was given to send when it is closed with something unread: the last words
 * of a WebSocket among it. */
static void throw_away_rest(int fd)
{
	char bytes[4096];

	for (int i = 0; i < 64 && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0; i++)
		;
}

void exchange_hang_up(struct exchange *x)
{
	x->on_gone = NULL;
	if (x->upgraded && !x->is_gone)
		throw_away_rest(x->conn->fd);
	exchange_cut(x);
	if (x->upgraded)
		(void)MHD_upgrade_action(take_ptr(&x->upgraded), MHD_UPGRADE_ACTION_CLOSE);
	http_poke(x->http);
}

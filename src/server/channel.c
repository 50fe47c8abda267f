#include "server/channel.h"

#include "base/own.h"

#include <gnutls/gnutls.h>
#include <sys/epoll.h>
#include <sys/socket.h>

int channel_open(struct channel *ret, int fd, struct tls *tls, struct err *e)
{
	*ret = (struct channel){ .fd = fd };
	if (!tls || tls_accept(&ret->tls, tls, fd, e) == 0)
		return 0;
	channel_close(ret);
	return -1;
}

void channel_close(struct channel *ch)
{
	if (ch->tls)
		gnutls_deinit(take_ptr(&ch->tls));
	closep(&ch->fd);
	ch->fd = -1;
}

static int tls_result(ssize_t n)
{
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? CHANNEL_AGAIN : CHANNEL_BROKEN;
}

static int plain_result(void)
{
	return errno == EAGAIN || errno == EINTR ? CHANNEL_AGAIN : CHANNEL_BROKEN;
}

int channel_greet(struct channel *ch, uint32_t *ret_events)
{
	int done = gnutls_handshake(ch->tls);

	*ret_events = gnutls_record_get_direction(ch->tls) ? EPOLLOUT : EPOLLIN;
	ch->is_agreed = done == GNUTLS_E_SUCCESS;
	if (done < 0 && !gnutls_error_is_fatal(done))
		return CHANNEL_AGAIN; /* warnings, too */
	return done < 0 ? CHANNEL_BROKEN : 0;
}

ssize_t channel_read(struct channel *ch, char *to, size_t room)
{
	if (!ch->tls) {
		ssize_t n = recv(ch->fd, to, room, MSG_DONTWAIT);
		return n < 0 ? plain_result() : n;
	}
	ssize_t n = gnutls_record_recv(ch->tls, to, room);
	return n < 0 ? tls_result(n) : n;
}

ssize_t channel_write(struct channel *ch, const char *bytes, size_t len)
{
	if (!ch->tls) {
		ssize_t n = send(ch->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		return n < 0 ? plain_result() : n;
	}
	ssize_t n = ch->owes ? gnutls_record_send(ch->tls, NULL, 0)
			     : gnutls_record_send(ch->tls, bytes, len);
	ch->owes = n < 0 && tls_result(n) == CHANNEL_AGAIN;
	return n < 0 ? tls_result(n) : n;
}

bool channel_has_more(const struct channel *ch)
{
	return ch->tls && gnutls_record_check_pending(ch->tls) > 0;
}

void channel_shut(struct channel *ch)
{
	if (ch->tls && ch->is_agreed)
		(void)gnutls_bye(ch->tls, GNUTLS_SHUT_WR);
	(void)shutdown(ch->fd, SHUT_WR);
}

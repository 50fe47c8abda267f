#include "cli/screen.h"

#include "cli/cli.h"
#include "cli/term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#define ENTER "\x1b[?1049h\x1b[?25l"
#define LEAVE "\x1b[?25h\x1b[?1049l"

enum { COLUMNS_USUAL = 80, LINES_USUAL = 24 };

static struct termios before;
static bool has_keys;                 /* stdin is a terminal, and gives them one by one */
static volatile sig_atomic_t is_open; /* the other screen is shown */
static volatile sig_atomic_t is_resized, is_ended;

static const int deadly[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGABRT, SIGFPE };

/* ---- taken and given back --------------------------------------------------------------- */

static void take_keys(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* In handlers, too: nothing here but calls that may be made there. */
void screen_close(void)
{
	int error = errno;

	if (is_open)
		(void)!write(STDOUT_FILENO, LEAVE, strlen(LEAVE));
	is_open = 0;
	if (has_keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
	errno = error;
}

static void on_deadly(int signo)
{
	screen_close();
	(void)signal(signo, SIG_DFL);
	(void)raise(signo);
}

static void on_resize(int signo)
{
	(void)signo;
	is_resized = 1;
}

/* Ctrl-Z: the shell gets its screen back, and we ours when we go on. */
static void on_stop(int signo)
{
	screen_close();
	(void)signal(signo, SIG_DFL);
	(void)raise(signo);
}

static void enter(void)
{
	struct sigaction stop = { .sa_handler = on_stop };

	if (has_keys)
		take_keys();
	(void)!write(STDOUT_FILENO, ENTER, strlen(ENTER));
	is_open = 1;
	(void)sigaction(SIGTSTP, &stop, NULL);
}

bool screen_open(void)
{
	struct sigaction die = { .sa_handler = on_deadly }, resize = { .sa_handler = on_resize };
	const char *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !term || !term[0] || strcmp(term, "dumb") == 0)
		return false;
	has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
	(void)sigfillset(&die.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
		(void)sigaction(deadly[i], &die, NULL);
	(void)sigaction(SIGWINCH, &resize, NULL);
	(void)sigaction(SIGCONT, &resize, NULL); /* without SA_RESTART: it is drawn anew */
	(void)atexit(screen_close);
	enter();
	return true;
}

/* ---- frames ---------------------------------------------------------------------------- */

/* As much of a line as has room: bytes. */
static size_t fits(const char *line, size_t len, size_t columns)
{
	size_t at = 0;

	while (at < len && columns > 0) {
		at++;
		while (at < len && ((unsigned char)line[at] & 0xc0) == 0x80)
			at++;
		columns--;
	}
	return at;
}

static void add_line(struct buf *out, const char *line, size_t len, bool is_title)
{
	bool is_heading = len && line[0] >= 'A' && line[0] <= 'Z';

	buf_add_str(out, term_style(stdout, is_title     ? TERM_BOLD
					    : is_heading ? TERM_DIM
							 : TERM_PLAIN));
	buf_add(out, line, len);
	buf_add_str(out, term_style(stdout, TERM_PLAIN));
	buf_add_str(out, "\x1b[K");
}

void screen_draw(const char *text)
{
	auto_buf struct buf out = BUF_INIT(1 << 20);
	struct winsize size = { 0 };

	if (!is_open)
		enter(); /* we were stopped, and go on */
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	size_t columns = size.ws_col ? size.ws_col : COLUMNS_USUAL;
	size_t lines = size.ws_row ? size.ws_row : LINES_USUAL;
	buf_add_str(&out, "\x1b[H");
	for (size_t i = 0; i < lines && *text; i++) {
		size_t len = strcspn(text, "\n");
		if (i)
			buf_add_str(&out,
				    "\r\n"); /* none after the last: the screen would scroll */
		add_line(&out, text, fits(text, len, columns), i == 0);
		text += len + (text[len] == '\n');
	}
	buf_add_str(&out, "\x1b[J");
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
	if (fflush(stdout) != 0)
		is_ended = 1; /* nobody sees it any more */
}

enum screen_key screen_wait(int ms)
{
	struct pollfd keys = { .fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN };
	char key = 0;

	if (is_ended)
		return SCREEN_QUIT;
	int n = poll(&keys, 1, ms);
	if (is_resized) {
		is_resized = 0;
		return SCREEN_REDRAW;
	}
	if (n <= 0)
		return SCREEN_TIMEOUT;
	if (read(STDIN_FILENO, &key, 1) != 1)
		return SCREEN_QUIT;
	return key == 'q' || key == 'Q' ? SCREEN_QUIT : SCREEN_REDRAW;
}

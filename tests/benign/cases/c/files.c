/* stdio and system calls on files: seek, stat, directories, temporary files, errors, locks. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int visited;

static int visit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)path;
	(void)st;
	(void)at;
	visited += kind == FTW_F || kind == FTW_DP;
	return 0;
}

static int wanted(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(void)
{
	char buffer[64] = "";
	struct dirent **names;
	struct stat st;
	FILE *file;
	int fd, n;

	mkdir("tree", 0755);
	mkdir("tree/sub", 0750);
	file = fopen("tree/data", "w+");
	for (int i = 0; i < 1000; i++)
		fprintf(file, "%04d\n", i);
	fseek(file, 500 * 5, SEEK_SET);
	printf("%s", fgets(buffer, sizeof(buffer), file));
	printf("%ld %d\n", ftell(file), feof(file));
	fclose(file);
	stat("tree/data", &st);
	printf("%lld %o %d\n", (long long)st.st_size, st.st_mode & 07777, S_ISREG(st.st_mode));
	printf("%d ", symlink("data", "tree/link"));
	printf("%d ", link("tree/data", "tree/hard"));
	printf("%d\n", rename("tree/hard", "tree/sub/moved"));
	n = scandir("tree", &names, wanted, alphasort);
	for (int i = 0; i < n; i++) {
		printf("%s ", names[i]->d_name);
		free(names[i]);
	}
	free(names);
	nftw("tree", visit, 10, FTW_DEPTH | FTW_PHYS);
	printf("%d\n", visited);
	fd = open("tree/data", O_RDWR | O_CLOEXEC);
	printf("%zd ", pwritev(fd, (struct iovec[]){ { "ab", 2 }, { "cd", 2 } }, 2, 0));
	printf("%zd\n", pread(fd, buffer, 4, 0));
	printf("%.4s %d %d\n", buffer, flock(fd, LOCK_EX | LOCK_NB), fdatasync(fd));
	int copy = open("copy", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	char all[5000];
	ssize_t sent = sendfile(copy, fd, &(off_t){ 0 }, 5000);

	if (sent < 0 && errno == EINVAL) /* as its manual says: read and write then */
		sent = write(copy, all, (size_t)pread(fd, all, sizeof(all), 0));
	printf("%zd ", sent);
	printf("%d\n", posix_fallocate(copy, 0, 10000));
	printf("%d ", open("tree/none", O_RDONLY));
	printf("%s\n", strerror(errno));
	printf("%d ", rmdir("tree"));
	printf("%s\n", strerror(errno));
	printf("%d ", open("tree", O_WRONLY));
	printf("%s\n", strerror(errno));
	strcpy(buffer, "/tmp/benign-XXXXXX");
	fd = mkstemp(buffer);
	printf("%d %d ", fd >= 0, unlink(buffer));
	printf("%d\n", access(buffer, F_OK));
	file = tmpfile();
	fputs("x", file);
	printf("%d %d\n", fflush(file), openat(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600) >= 0);
	printf("%d %d\n", statx(AT_FDCWD, "copy", 0, STATX_SIZE, &(struct statx){ 0 }), utimensat(AT_FDCWD, "copy", NULL, 0));
	printf("%s\n", realpath("tree/../tree/link", NULL) ? "resolved" : "lost");
	return 0;
}

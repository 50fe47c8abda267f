/* System V and POSIX inter-process communication. */
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

struct note {
	long type;
	char text[32];
};

int main(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	char *memory = shmat(id, NULL, 0);

	if (fork() == 0) {
		strcpy(memory, "written by the child");
		_exit(0);
	}
	wait(NULL);
	printf("%s\n", memory);
	printf("%d\n", shmdt(memory));
	printf("%d\n", shmctl(id, IPC_RMID, NULL));

	id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	semop(id, &(struct sembuf){ 0, 3, 0 }, 1);
	semop(id, &(struct sembuf){ 0, -1, 0 }, 1);
	printf("%d\n", semctl(id, 0, GETVAL));
	printf("%d\n", semctl(id, 0, IPC_RMID));

	struct note note = { 2, "by message" };

	id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	msgsnd(id, &note, sizeof(note.text), 0);
	memset(&note, 0, sizeof(note));
	printf("%zd ", msgrcv(id, &note, sizeof(note.text), 2, 0));
	printf("%s %d\n", note.text, msgctl(id, IPC_RMID, NULL));

	sem_t *named = sem_open("/benign-c", O_CREAT | O_EXCL, 0600, 0);

	if (named == SEM_FAILED)
		return 1;
	if (fork() == 0) {
		sem_post(named);
		_exit(0);
	}
	printf("%d\n", sem_wait(named));
	wait(NULL);
	sem_unlink("/benign-c");
	sem_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	sem_init(shared, 1, 2);
	sem_wait(shared);
	printf("%d\n", sem_trywait(shared));
	printf("%d\n", sem_trywait(shared));
	printf("%d\n", sem_destroy(shared));
	return 0;
}

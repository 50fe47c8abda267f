/* pthreads: mutex, condition, thread-specific data, barrier, read-write lock, atomics. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 8, TIMES = 10000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_key_t key;
static long total;
static atomic_long counted;
static int turn;
static _Thread_local int mine;

static void *add(void *arg)
{
	long id = (long)arg;

	pthread_setspecific(key, arg);
	for (int i = 0; i < TIMES; i++) {
		pthread_mutex_lock(&lock);
		total += id;
		pthread_mutex_unlock(&lock);
		atomic_fetch_add(&counted, 1);
		mine++;
	}
	pthread_barrier_wait(&barrier);
	pthread_rwlock_rdlock(&shared);
	pthread_rwlock_unlock(&shared);
	return (void *)(mine + (long)pthread_getspecific(key));
}

static void *speak(void *arg)
{
	long id = (long)arg;

	pthread_mutex_lock(&lock);
	while (turn != id)
		pthread_cond_wait(&ready, &lock);
	printf("thread %ld speaks\n", id);
	turn++;
	pthread_cond_broadcast(&ready);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	long sum = 0;

	pthread_key_create(&key, NULL);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		sum += (long)result;
	}
	printf("%ld %ld %ld\n", total, atomic_load(&counted), sum);
	for (long i = THREADS - 1; i >= 0; i--)
		pthread_create(&threads[i], NULL, speak, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

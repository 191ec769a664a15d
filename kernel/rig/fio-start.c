// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into fio inside the rig: makes it start in less of this machine's
 * time.
 *
 * When fio starts it compares the processor's own counter with the clock for
 * 64 ms (calibrate_cpu_clock() in its gettime.c), whatever --clocksource says,
 * by reading the clock over and over. In virtual time that is tens of thousands
 * of system calls of a User Mode Linux, seconds of a processor. Here a thread
 * that has read the clock a thousand times in a row sleeps for 640 us at each
 * further time.
 *
 * Only the process that was started does so, in its first thread: that one
 * sends no requests. fio's jobs are forked or are other threads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IN_A_ROW 1000 /* so many are no coincidence */
#define SOON_NS 2000 /* two reads with nothing between them */

static __thread int first_thread;
static __thread int in_a_row;
static __thread long long last_ns;

static void in_child(void)
{
	first_thread = 0;
}

__attribute__((constructor)) static void begin(void)
{
	first_thread = 1;
	pthread_atfork(NULL, NULL, in_child);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	const struct timespec pause = { .tv_nsec = 640000 };
	long ret = syscall(SYS_clock_gettime, clock, now);
	long long ns;

	if (!first_thread || ret)
		return ret;
	ns = now->tv_sec * 1000000000LL + now->tv_nsec;
	in_a_row = ns - last_ns < SOON_NS ? in_a_row + 1 : 0;
	if (in_a_row > IN_A_ROW) {
		syscall(SYS_nanosleep, &pause, NULL);
		ret = syscall(SYS_clock_gettime, clock, now);
		ns = now->tv_sec * 1000000000LL + now->tv_nsec;
	}
	last_ns = ns;
	return ret;
}

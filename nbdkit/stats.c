// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics: as text for people (on SIGUSR1 and at the end), and as a text
 * file for Prometheus' node exporter, replaced whole so that nobody reads a
 * half of it.
 */
#include "server.h"
#include "../core/array.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_t thread;
static bool thread_runs;
static bool stopping; /* atomic */

static const char *const directions[] = { "read", "write" };

static void add_times(struct stats_times *to, const struct stats_times *from)
{
	u32 i;

	to->count += from->count;
	to->sum_ns += from->sum_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	for (i = 0; i < STATS_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

void stats_add_connection(struct stats_connection *to,
			  const struct stats_connection *from)
{
	u32 i;

	for (i = 0; i < SS_DIRECTIONS; i++) {
		to->flow[i].requests += from->flow[i].requests;
		to->flow[i].bytes += from->flow[i].bytes;
		to->flow[i].errors += from->flow[i].errors;
	}
	add_times(&to->wait, &from->wait);
	add_times(&to->service, &from->service);
}

/* ---- a picture of all, so that no lock is held while writing ---- */

struct picture_member {
	struct stats_member stats;
	struct ss_counters counters;
};

struct picture_connection {
	u64 owner; /* 0: all that are gone */
	struct stats_connection stats;
};

struct picture {
	struct picture_member member[MAX_MEMBERS];
	u32 nr_connections;
	struct picture_connection *connection;
};

static bool take_picture(struct picture *picture)
{
	struct connection *connection;
	u32 i, nr = 1;

	for (i = 0; i < server.nr_members; i++) {
		struct member *member = server.member[i];

		pthread_mutex_lock(&member->lock);
		picture->member[i].stats = member->stats;
		picture->member[i].counters = member->sched.counters;
		pthread_mutex_unlock(&member->lock);
	}
	pthread_mutex_lock(&server.lock);
	for (connection = server.connections; connection;
	     connection = connection->next)
		nr++;
	picture->connection = calloc(nr, sizeof(*picture->connection));
	if (picture->connection) {
		picture->connection[0].stats = server.closed;
		i = 1;
		for (connection = server.connections; connection;
		     connection = connection->next) {
			struct picture_connection *to =
				&picture->connection[i++];

			to->owner = connection->owner;
			pthread_mutex_lock(&connection->stats.lock);
			to->stats = connection->stats;
			pthread_mutex_unlock(&connection->stats.lock);
		}
	}
	picture->nr_connections = nr;
	pthread_mutex_unlock(&server.lock);
	return picture->connection;
}

/* ---- for people ---- */

/* The upper end of the bucket that holds this part of all. */
static double quantile_ms(const struct stats_times *times, u32 percent)
{
	u64 rank = (times->count * percent + 99) / 100, seen = 0;
	u32 i;

	for (i = 0; i < STATS_BUCKETS - 1; i++) {
		seen += times->bucket[i];
		if (seen >= rank)
			break;
	}
	if ((SS_USEC << i) > times->max_ns)
		return (double)times->max_ns / 1e6;
	return (double)(SS_USEC << i) / 1e6;
}

static void write_times(FILE *to, const char *what,
			const struct stats_times *times)
{
	u64 count = times->count ? times->count : 1;

	fprintf(to, " %s mean %.3f ms p50 <= %.3f p99 <= %.3f max %.3f;", what,
		(double)times->sum_ns / (double)count / 1e6,
		quantile_ms(times, 50), quantile_ms(times, 99),
		(double)times->max_ns / 1e6);
}

static void write_flow(FILE *to, const struct stats_flow *flow)
{
	u32 i;

	for (i = 0; i < SS_DIRECTIONS; i++)
		fprintf(to, " %s %lu requests %lu bytes %lu errors;",
			directions[i], flow[i].requests, flow[i].bytes,
			flow[i].errors);
}

static void write_text(FILE *to, const struct picture *picture)
{
	u32 i;

	for (i = 0; i < server.nr_members; i++) {
		const struct stats_member *stats = &picture->member[i].stats;
		const struct ss_counters *c = &picture->member[i].counters;

		fprintf(to, "streamsched: member %u (%s):", i,
			server.member[i]->file.name);
		write_flow(to, stats->flow);
		fprintf(to, " %lu flushes %lu failed;", stats->flushes,
			stats->flush_errors);
		write_times(to, "wait", &stats->wait);
		write_times(to, "service", &stats->service);
		fprintf(to,
			" dispatches %lu merges %lu seeks %lu waits %lu hits %lu timeouts %lu slices %lu expired %lu idle %.3f s\n",
			c->dispatches, c->merges, c->seeks, c->waits, c->hits,
			c->timeouts, c->slices_ended, c->expired,
			(double)c->idle_ns / 1e9);
	}
	for (i = 0; i < picture->nr_connections; i++) {
		const struct picture_connection *one = &picture->connection[i];

		if (one->owner)
			fprintf(to, "streamsched: connection %lu:", one->owner);
		else
			fprintf(to, "streamsched: connections that are gone:");
		write_flow(to, one->stats.flow);
		write_times(to, "wait", &one->stats.wait);
		write_times(to, "service", &one->stats.service);
		fputc('\n', to);
	}
	fflush(to);
}

/* ---- for Prometheus ---- */

static void head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP streamsched_%s %s\n# TYPE streamsched_%s %s\n",
		name, help, name, type);
}

static void histogram(FILE *to, const char *name, const char *label, u64 id,
		      const struct stats_times *times)
{
	u64 seen = 0;
	u32 i;

	for (i = 0; i < STATS_BUCKETS - 1; i++) {
		seen += times->bucket[i];
		fprintf(to,
			"streamsched_%s_bucket{%s=\"%lu\",le=\"%.6f\"} %lu\n",
			name, label, id, (double)(1ULL << i) / 1e6, seen);
	}
	fprintf(to, "streamsched_%s_bucket{%s=\"%lu\",le=\"+Inf\"} %lu\n", name,
		label, id, times->count);
	fprintf(to, "streamsched_%s_sum{%s=\"%lu\"} %.9f\n", name, label, id,
		(double)times->sum_ns / 1e9);
	fprintf(to, "streamsched_%s_count{%s=\"%lu\"} %lu\n", name, label, id,
		times->count);
}

/* A number of struct stats_flow or struct ss_counters, by its place. */
static u64 number_at(const void *structure, size_t offset)
{
	u64 number;

	memcpy(&number, (const char *)structure + offset, sizeof(number));
	return number;
}

static void flows(FILE *to, const struct picture *picture, const char *name,
		  const char *help, size_t offset)
{
	char connection_name[64];
	u32 i, d;

	head(to, name, "counter", help);
	for (i = 0; i < server.nr_members; i++)
		for (d = 0; d < SS_DIRECTIONS; d++)
			fprintf(to,
				"streamsched_%s{member=\"%u\",direction=\"%s\"} %lu\n",
				name, i, directions[d],
				number_at(&picture->member[i].stats.flow[d],
					  offset));
	snprintf(connection_name, sizeof(connection_name), "connection_%s",
		 name);
	head(to, connection_name, "counter", help);
	for (i = 0; i < picture->nr_connections; i++)
		for (d = 0; d < SS_DIRECTIONS; d++)
			fprintf(to,
				"streamsched_%s{connection=\"%lu\",direction=\"%s\"} %lu\n",
				connection_name, picture->connection[i].owner,
				directions[d],
				number_at(&picture->connection[i].stats.flow[d],
					  offset));
}

static const struct {
	const char *name;
	const char *help;
	size_t offset;
} counters[] = {
	{ "dispatches_total", "Requests sent to the disk.",
	  offsetof(struct ss_counters, dispatches) },
	{ "merges_total", "Requests joined with a pending one.",
	  offsetof(struct ss_counters, merges) },
	{ "seeks_total", "Requests not where the head was.",
	  offsetof(struct ss_counters, seeks) },
	{ "waits_total", "Times the head was held for a stream.",
	  offsetof(struct ss_counters, waits) },
	{ "hits_total", "Waits that ended with the request waited for.",
	  offsetof(struct ss_counters, hits) },
	{ "timeouts_total", "Waits that ended by time.",
	  offsetof(struct ss_counters, timeouts) },
	{ "second_chances_total", "Waits prolonged for a long stream.",
	  offsetof(struct ss_counters, second_chances) },
	{ "slices_ended_total", "Turns of streams that ended.",
	  offsetof(struct ss_counters, slices_ended) },
	{ "expired_total", "Requests sent because of their age.",
	  offsetof(struct ss_counters, expired) },
};

static void write_flushes(FILE *to, const struct picture *picture)
{
	u32 i;

	head(to, "flushes_total", "counter", "Flushes.");
	for (i = 0; i < server.nr_members; i++)
		fprintf(to, "streamsched_flushes_total{member=\"%u\"} %lu\n", i,
			picture->member[i].stats.flushes);
	head(to, "flush_errors_total", "counter", "Flushes that failed.");
	for (i = 0; i < server.nr_members; i++)
		fprintf(to,
			"streamsched_flush_errors_total{member=\"%u\"} %lu\n",
			i, picture->member[i].stats.flush_errors);
	head(to, "idle_seconds_total", "counter",
	     "Time that the head was held with requests pending.");
	for (i = 0; i < server.nr_members; i++)
		fprintf(to,
			"streamsched_idle_seconds_total{member=\"%u\"} %.9f\n",
			i, (double)picture->member[i].counters.idle_ns / 1e9);
}

static void write_array(FILE *to)
{
	struct ss_array_counters counters;

	if (!array_counters(&counters))
		return;
	head(to, "array_streams_total", "counter",
	     "Streams found in all members of the stripe set.");
	fprintf(to, "streamsched_array_streams_total %lu\n",
		counters.established);
	head(to, "array_turns_total", "counter",
	     "Times that all heads were brought to a stream.");
	fprintf(to, "streamsched_array_turns_total %lu\n", counters.turns);
}

static void write_metrics(FILE *to, const struct picture *picture)
{
	u32 i, c;

	flows(to, picture, "requests_total", "Requests done.",
	      offsetof(struct stats_flow, requests));
	flows(to, picture, "bytes_total", "Bytes read or written.",
	      offsetof(struct stats_flow, bytes));
	flows(to, picture, "errors_total", "Requests that failed.",
	      offsetof(struct stats_flow, errors));
	head(to, "wait_seconds", "histogram", "From arrival to dispatch.");
	for (i = 0; i < server.nr_members; i++)
		histogram(to, "wait_seconds", "member", i,
			  &picture->member[i].stats.wait);
	head(to, "service_seconds", "histogram",
	     "From dispatch to completion.");
	for (i = 0; i < server.nr_members; i++)
		histogram(to, "service_seconds", "member", i,
			  &picture->member[i].stats.service);
	head(to, "connection_wait_seconds", "histogram",
	     "From arrival to dispatch; connection 0 is all that are gone.");
	for (i = 0; i < picture->nr_connections; i++)
		histogram(to, "connection_wait_seconds", "connection",
			  picture->connection[i].owner,
			  &picture->connection[i].stats.wait);
	head(to, "connection_service_seconds", "histogram",
	     "From dispatch to completion.");
	for (i = 0; i < picture->nr_connections; i++)
		histogram(to, "connection_service_seconds", "connection",
			  picture->connection[i].owner,
			  &picture->connection[i].stats.service);
	write_flushes(to, picture);
	for (c = 0; c < ARRAY_SIZE(counters); c++) {
		head(to, counters[c].name, "counter", counters[c].help);
		for (i = 0; i < server.nr_members; i++)
			fprintf(to, "streamsched_%s{member=\"%u\"} %lu\n",
				counters[c].name, i,
				number_at(&picture->member[i].counters,
					  counters[c].offset));
	}
	write_array(to);
}

/* The new file beside @path, so that nobody reads half of it; -1 with errno. */
static int open_new(const char *path, char *name, size_t bytes)
{
	snprintf(name, bytes, "%s.new", path);
	return open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

int stats_check(const char *key, const char *path)
{
	char name[PATH_MAX];
	struct stat st;
	int fd;

	if (!path)
		return 0;
	fd = open_new(path, name, sizeof(name));
	if (fd < 0) {
		nbdkit_error("%s=%s: %s: %s", key, path, name, strerror(errno));
		return -1;
	}
	close(fd);
	unlink(name);
	if (stat(path, &st) || S_ISREG(st.st_mode))
		return 0;
	nbdkit_error("%s=%s: is there, and no regular file", key, path);
	return -1;
}

static int replace_file(const char *path, const struct picture *picture,
			void (*write)(FILE *, const struct picture *))
{
	char name[PATH_MAX];
	FILE *to = NULL;
	int fd;

	fd = open_new(path, name, sizeof(name));
	if (fd >= 0)
		to = fdopen(fd, "w");
	if (!to) {
		nbdkit_error("%s: %s", name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	write(to, picture);
	if (fclose(to) || rename(name, path)) {
		nbdkit_error("%s: %s", path, strerror(errno));
		unlink(name);
		return -1;
	}
	return 0;
}

static int report(bool text)
{
	struct picture *picture = calloc(1, sizeof(*picture));
	int error = 0;

	if (!picture || !take_picture(picture)) {
		nbdkit_error("no memory for statistics");
		free(picture);
		return -1;
	}
	if (server.config.metrics)
		error |= replace_file(server.config.metrics, picture,
				      write_metrics);
	if (text && server.config.stats)
		error |= replace_file(server.config.stats, picture, write_text);
	else if (text)
		write_text(stderr, picture);
	free(picture->connection);
	free(picture);
	return error;
}

static void *stats_thread(void *data)
{
	struct timespec interval = { .tv_sec = server.config.metrics_s };
	sigset_t signals;

	(void)data;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
		int signal = sigtimedwait(&signals, NULL, &interval);

		if (__atomic_load_n(&stopping, __ATOMIC_ACQUIRE))
			break;
		if (signal == SIGUSR1)
			report(true);
		else if (server.config.metrics)
			report(false);
	}
	return NULL;
}

int stats_start(void)
{
	sigset_t signals;
	int error;

	/* Where this cannot be done it is better told now. */
	if (server.config.metrics && report(false))
		return -1;
	/* Threads begun from here on leave the signal to stats_thread(). */
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	error = pthread_create(&thread, NULL, stats_thread, NULL);
	if (error) {
		nbdkit_error("cannot start a thread: %s", strerror(error));
		return -1;
	}
	thread_runs = true;
	return 0;
}

void stats_stop(void)
{
	if (!thread_runs)
		return;
	__atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	report(true);
}

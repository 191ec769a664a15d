// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics: as text for people (on SIGUSR1, and with stats= at the end), and
 * as a text file for Prometheus' node exporter. Files are replaced whole, so
 * that nobody reads a half of one.
 */
#include "server.h"
#include "../core/array/array.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_t thread;
static bool thread_runs;
static bool stopping; /* atomic */
static sem_t asked; /* posted for each text that is to be written */

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

	fprintf(to, "  %s: mean %.3f ms, p50 <= %.3f, p99 <= %.3f, max %.3f\n",
		what, (double)times->sum_ns / (double)count / 1e6,
		quantile_ms(times, 50), quantile_ms(times, 99),
		(double)times->max_ns / 1e6);
}

static void write_flow(FILE *to, const struct stats_flow *flow)
{
	u32 i;

	for (i = 0; i < SS_DIRECTIONS; i++)
		fprintf(to, "  %s: %lu requests, %lu bytes, %lu errors\n",
			directions[i], flow[i].requests, flow[i].bytes,
			flow[i].errors);
}

static void write_scheduler(FILE *to, const struct ss_counters *c)
{
	fprintf(to, "  dispatches %lu, merges %lu, seeks %lu\n", c->dispatches,
		c->merges, c->seeks);
	fprintf(to, "  waits %lu, hits %lu, timeouts %lu, idle %.3f s\n",
		c->waits, c->hits, c->timeouts, (double)c->idle_ns / 1e9);
	fprintf(to, "  slices %lu, expired %lu\n", c->slices_ended, c->expired);
}

static void write_text(FILE *to, const struct picture *picture)
{
	u32 i;

	for (i = 0; i < server.nr_members; i++) {
		const struct stats_member *stats = &picture->member[i].stats;

		fprintf(to, STATS_HEADER " member %u (%s):\n", i,
			server.member[i]->file.name);
		write_flow(to, stats->flow);
		fprintf(to, "  flush: %lu, %lu errors\n", stats->flushes,
			stats->flush_errors);
		write_times(to, "wait", &stats->wait);
		write_times(to, "service", &stats->service);
		write_scheduler(to, &picture->member[i].counters);
	}
	for (i = 0; i < picture->nr_connections; i++) {
		const struct picture_connection *one = &picture->connection[i];

		if (one->owner)
			fprintf(to, STATS_HEADER " connection %lu:\n",
				one->owner);
		else
			fprintf(to,
				STATS_HEADER " connections that are gone:\n");
		write_flow(to, one->stats.flow);
		write_times(to, "wait", &one->stats.wait);
		write_times(to, "service", &one->stats.service);
	}
	fflush(to);
}

/* ---- for Prometheus ---- */

static void head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, METRICS_HEADER "%s %s\n# TYPE streamsched_%s %s\n", name,
		help, name, type);
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

	flows(to, picture, METRICS_FIRST, "Requests done.",
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

static int write_output(struct output *output, const struct picture *picture,
			void (*write)(FILE *, const struct picture *))
{
	char name[OUTPUT_NAME];
	FILE *to = output_begin(output, name);
	bool failed;

	if (!to)
		return -1;
	write(to, picture);
	failed = ferror(to);
	if (!fclose(to) && !failed)
		return output_replace(output, name);
	nbdkit_error("%s=%s: %s", output->key, output->path, strerror(errno));
	output_forget(output, name);
	return -1;
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
	if (server.config.metrics.path)
		error |= write_output(&server.config.metrics, picture,
				      write_metrics);
	if (text && server.config.stats.path)
		error |= write_output(&server.config.stats, picture,
				      write_text);
	else if (text)
		write_text(stderr, picture);
	free(picture->connection);
	free(picture);
	return error;
}

/* SIGUSR1, whichever thread it interrupts. */
static void on_signal(int number)
{
	(void)number;
	sem_post(&asked);
}

/* Block or unblock SIGUSR1 for this thread and those that it starts. */
static void mask_signal(int how)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(how, &signals, NULL);
}

void stats_prepare(void)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART };

	sem_init(&asked, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	/* An output as long as it may be (ulimit -f) must end no server. */
	signal(SIGXFSZ, SIG_IGN);
}

void stats_mask(void)
{
	mask_signal(SIG_BLOCK);
}

static void *stats_thread(void *data)
{
	(void)data;
	mask_signal(SIG_UNBLOCK);
	for (;;) {
		struct timespec until;
		int result;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += server.config.metrics_s;
		do
			result = sem_clockwait(&asked, CLOCK_MONOTONIC, &until);
		while (result && errno == EINTR);
		if (__atomic_load_n(&stopping, __ATOMIC_ACQUIRE))
			return NULL;
		if (!result)
			report(true);
		else if (server.config.metrics.path)
			report(false);
	}
}

int stats_start(void)
{
	int error;

	/* With nbdkit --user it is another user who writes them. */
	if (output_try(&server.config.stats, NULL) ||
	    (server.config.metrics.path && report(false)))
		return -1;
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
	/* The handler's code goes with the plugin. */
	signal(SIGUSR1, SIG_IGN);
	if (!thread_runs)
		return;
	__atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
	sem_post(&asked);
	pthread_join(thread, NULL);
	report(server.config.stats_wanted);
}

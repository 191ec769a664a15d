// SPDX-License-Identifier: GPL-2.0-only
/*
 * log=: what happened to each piece and request, as blkparse writes it, so
 * that what reads its traces reads this (docs/sim/TRACES.md).
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

void log_event(const struct member *member, const char *event,
	       const struct ss_request *rq, bool fua, u64 now_ns)
{
	u64 s, ns;

	if (!server.log)
		return;
	s = (now_ns - server.log_began_ns) / SS_SEC;
	ns = (now_ns - server.log_began_ns) % SS_SEC;
	fprintf(server.log,
		"  0,%-3u %2u %8lu %5lu.%09lu %5lu  %s %3s%s%s %lu + %u [nbd]\n",
		member->index, member->index,
		__atomic_add_fetch(&server.log_lines, 1, __ATOMIC_RELAXED), s,
		ns, rq->owner, event, rq->direction == SS_READ ? "R" : "W",
		fua ? "F" : "",
		rq->direction == SS_WRITE && ss_request_is_sync(rq) ? "S" : "",
		rq->sector, rq->nr_sectors);
}

int log_open(void)
{
	struct output *output = &server.config.log;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char name[OUTPUT_NAME];

	if (!output->path)
		return 0;
	server.log = output_begin(output, name);
	if (!server.log)
		return -1;
	/* So that no other server takes its place while it is written. */
	fcntl(fileno(server.log), F_OFD_SETLK, &lock);
	fputs(LOG_HEADER, server.log);
	if (fflush(server.log)) {
		nbdkit_error("log=%s: %s", output->path, strerror(errno));
		output_forget(output, name);
		return -1;
	}
	server.log_began_ns = clock_ns();
	return output_replace(output, name);
}

/* On a full file system lines are missing in its midst: that must be known. */
void log_close(void)
{
	bool failed;

	if (!server.log)
		return;
	failed = ferror(server.log);
	if (fclose(server.log) || failed)
		nbdkit_error("log=%s: it is not complete: %s",
			     server.config.log.path,
			     failed ? "a write failed" : strerror(errno));
	server.log = NULL;
}

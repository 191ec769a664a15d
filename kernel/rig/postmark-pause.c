// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into PostMark inside the rig: pauses it between the creation of its
 * files and the transactions.
 *
 * Which files are still in the page cache when the first transaction begins is
 * chance, and decides how much must be read. So whoever starts PostMark empties
 * the cache when all files are there. PostMark cannot be told to wait, but it
 * flushes what it has said when it begins to create files and when it begins
 * with the transactions: then a line is written to descriptor 3, and one is
 * read from 4 before it goes on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define CREATED 3 /* descriptors */
#define GO_ON 4

int fflush(FILE *stream)
{
	static int (*flush)(FILE *);
	static int nr;
	int ret;
	char c;

	if (!flush)
		flush = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
	ret = flush(stream);
	if (stream == stdout && ++nr == 2 &&
	    (write(CREATED, "\n", 1) != 1 || read(GO_ON, &c, 1) != 1))
		_exit(1);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a fuzz target without libFuzzer: on each file named, then on as many
 * inputs of random bytes as the first argument says, the same in each run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_BYTES 2048

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

/* xorshift64 (Marsaglia 2003): no two C libraries have the same rand(). */
static uint8_t random_byte(void)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint8_t)(state >> 32);
}

int main(int argc, char **argv)
{
	static uint8_t bytes[MOST_BYTES];
	size_t nr;
	long left;
	int i;

	for (i = 2; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");

		if (!file) {
			perror(argv[i]);
			return 2;
		}
		nr = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		LLVMFuzzerTestOneInput(bytes, nr);
	}
	for (left = argc > 1 ? atol(argv[1]) : 0; left > 0; left--) {
		for (nr = 0; nr < sizeof(bytes); nr++)
			bytes[nr] = random_byte();
		LLVMFuzzerTestOneInput(bytes, nr);
	}
	return 0;
}

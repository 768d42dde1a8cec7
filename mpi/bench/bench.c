/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * gleam-mpi-bench [-m MIN:MAX] [-i ITERATIONS] [-r ROOT] [-f FILE] times MPI_Bcast, in the columns
 * of OSU's osu_bcast: each rank's mean time of its calls, between which there is a barrier; of
 * these the mean, the least and the greatest of all ranks. FILE counts the bytes that leave the
 * root's link: a column has them for each byte of the messages.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, root, iterations = 10;
static const char *counter;

static unsigned long long link_bytes(void)
{
	unsigned long long n = 0;
	FILE *f;

	if (!counter || rank != root)
		return 0;
	f = fopen(counter, "r");
	if (!f || fscanf(f, "%llu", &n) != 1) {
		fprintf(stderr, "gleam-mpi-bench: %s is no number\n", counter);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	fclose(f);
	return n;
}

static void times_of(void *buffer, int bytes)
{
	unsigned long long link;
	double begin, mine = 0, sum, least, most, ratio;

	MPI_Bcast(buffer, bytes, MPI_CHAR, root, MPI_COMM_WORLD); /* makes the group, and connections */
	MPI_Barrier(MPI_COMM_WORLD);
	link = link_bytes();
	for (int i = 0; i < iterations; i++) {
		begin = MPI_Wtime();
		MPI_Bcast(buffer, bytes, MPI_CHAR, root, MPI_COMM_WORLD);
		mine += MPI_Wtime() - begin;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	mine *= 1e6 / iterations;
	ratio = (double)(link_bytes() - link) / ((double)bytes * iterations);
	MPI_Bcast(&ratio, 1, MPI_DOUBLE, root, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank)
		return;
	printf("%-10d%18.2f%18.2f%18.2f%12d", bytes, sum / ranks, least, most, iterations);
	if (counter)
		printf("%18.3f", ratio);
	puts("");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	long min = 1, max = 1 << 20;
	char *end = "";
	void *buffer;
	int c;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	while ((c = getopt(argc, argv, "m:i:r:f:")) != -1) {
		if (c == 'm') {
			max = strtol(optarg, &end, 10);
			if (*end == ':') {
				min = max;
				max = strtol(end + 1, &end, 10);
			}
		} else if (c == 'i') {
			iterations = atoi(optarg);
		} else if (c == 'r') {
			root = atoi(optarg);
		} else if (c == 'f') {
			counter = optarg;
		}
		if (c == '?' || *end || iterations < 1 || min < 1 || max < min || max > 1 << 30 || root < 0 || root >= ranks) {
			if (!rank)
				fprintf(stderr, "gleam-mpi-bench [-m MIN:MAX] [-i ITERATIONS] [-r ROOT] [-f FILE]\n");
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
	}
	buffer = calloc(max, 1);
	if (!buffer)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (!rank)
		printf("# gleam-mpi-bench: MPI_Bcast of rank %d to %d\n%-10s%18s%18s%18s%12s%s\n", root, ranks - 1, "# Size", "Avg Latency(us)",
		       "Min Latency(us)", "Max Latency(us)", "Iterations", counter ? "  Bytes on link/byte" : "");
	for (long bytes = min; bytes <= max; bytes *= 4)
		times_of(buffer, bytes);
	free(buffer);
	return MPI_Finalize();
}

/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * gleam-mpi-bench [-c COLLECTIVE] [-m MIN:MAX] [-i ITERATIONS] [-r ROOT] [-f FILE] times a collective, in the
 * columns of OSU's osu_bcast: each rank's mean time of its calls, between which there is a
 * barrier; of these the mean, the least and the greatest of all ranks. FILE counts the bytes that
 * leave the root's link: a column has them for each byte of a message.
 *
 * COLLECTIVE is bcast, ibcast (with MPI_Wait at once), allgather, allreduce (of bytes, bitwise or), or what the last two would be
 * by broadcasts: turns, an MPI_Bcast by each rank, and reduce, an MPI_Reduce and an MPI_Bcast.
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

static void bcast(char *buffer, char *all, int bytes)
{
	(void)all;
	MPI_Bcast(buffer, bytes, MPI_CHAR, root, MPI_COMM_WORLD);
}

static void ibcast(char *buffer, char *all, int bytes)
{
	MPI_Request request;

	(void)all;
	MPI_Ibcast(buffer, bytes, MPI_CHAR, root, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void allgather(char *buffer, char *all, int bytes)
{
	MPI_Allgather(buffer, bytes, MPI_CHAR, all, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void turns(char *buffer, char *all, int bytes)
{
	memcpy(all + (size_t)rank * bytes, buffer, bytes);
	for (int i = 0; i < ranks; i++)
		MPI_Bcast(all + (size_t)i * bytes, bytes, MPI_CHAR, i, MPI_COMM_WORLD);
}

static void allreduce(char *buffer, char *all, int bytes)
{
	MPI_Allreduce(buffer, all, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

static void reduce(char *buffer, char *all, int bytes)
{
	MPI_Reduce(buffer, all, bytes, MPI_BYTE, MPI_BOR, root, MPI_COMM_WORLD);
	MPI_Bcast(all, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static const struct collective {
	const char *name;
	void (*call)(char *buffer, char *all, int bytes);
} collectives[] = {{"bcast", bcast}, {"ibcast", ibcast}, {"allgather", allgather}, {"turns", turns}, {"allreduce", allreduce}, {"reduce", reduce}};

static const struct collective *collective_of(const char *name)
{
	for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
		if (!strcmp(collectives[i].name, name))
			return &collectives[i];
	return NULL;
}

static void times_of(const struct collective *collective, char *buffer, char *all, int bytes)
{
	unsigned long long link;
	double begin, mine = 0, sum, least, most, ratio;

	collective->call(buffer, all, bytes); /* makes the group, and connections */
	MPI_Barrier(MPI_COMM_WORLD);
	link = link_bytes();
	for (int i = 0; i < iterations; i++) {
		begin = MPI_Wtime();
		collective->call(buffer, all, bytes);
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
	const struct collective *collective = &collectives[0];
	char *end = "", *buffer, *all;
	int c;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	while ((c = getopt(argc, argv, "c:m:i:r:f:")) != -1) {
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
		} else if (c == 'c') {
			collective = collective_of(optarg);
		}
		if (c == '?' || !collective || *end || iterations < 1 || min < 1 || max < min || max > 1 << 30 || root < 0 || root >= ranks) {
			if (!rank)
				fprintf(stderr, "gleam-mpi-bench [-c bcast|ibcast|allgather|turns|allreduce|reduce] [-m MIN:MAX] [-i ITERATIONS] [-r ROOT] [-f FILE]\n");
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
	}
	buffer = calloc(max, 1);
	all = calloc(max, ranks);
	if (!buffer || !all)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (!rank)
		printf("# gleam-mpi-bench: %s of ranks 0 to %d, root %d\n%-10s%18s%18s%18s%12s%s\n", collective->name, ranks - 1, root, "# Size", "Avg Latency(us)",
		       "Min Latency(us)", "Max Latency(us)", "Iterations", counter ? "  Bytes on link/byte" : "");
	for (long bytes = min; bytes <= max; bytes *= 4)
		times_of(collective, buffer, all, bytes);
	free(buffer);
	free(all);
	return MPI_Finalize();
}

/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agree.h"

int agree(MPI_Comm comm, char why[WHY])
{
	int rank, mine, first;
	char text[WHY] = "";

	PMPI_Comm_rank(comm, &rank);
	mine = *why ? rank : INT_MAX;
	if (PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm))
		return -1;
	if (first == INT_MAX)
		return 1;
	memcpy(text, why, WHY);
	if (PMPI_Bcast(text, WHY, MPI_CHAR, first, comm))
		return -1;
	text[WHY - 1] = 0;
	snprintf(why, WHY, "rank %d: %.*s", first, WHY - 32, text);
	return 0;
}

/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GLEAM_MPI_DATATYPE_H
#define GLEAM_MPI_DATATYPE_H

#include <mpi.h>
#include <stdint.h>

/* Whether elements of the type are in memory as MPI_Pack makes them. 0 in doubt. */
int is_contiguous(MPI_Datatype type);

/* Elements of a type that is not contiguous, and memory for them as MPI_Pack makes them. The program may
 * free the type meanwhile. */
struct packed {
	void *elements;
	MPI_Datatype type;
	int count;
	unsigned char *bytes;
	int room;
};

/* All return MPI_SUCCESS or an error. pack_elements fails with MPI_ERR_OTHER if they are not as many bytes. */
int packed_open(struct packed *p, void *elements, int count, MPI_Datatype type, int64_t bytes);
int pack_elements(struct packed *p, int64_t bytes);
int unpack_elements(struct packed *p, int64_t bytes);
void packed_close(struct packed *p);

#endif

/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>

#include "datatype.h"

/* The combiner of a type, and of a repetition or duplicate the type within. MPI 4 has types
 * with counts of type MPI_Count, and ends a program that asks for their envelope without it. */
static int look(MPI_Datatype type, MPI_Datatype *inner)
{
	int combiner, rc = 0;
#if MPI_VERSION >= 4
	MPI_Count integers, addresses, counts, types, count;
	int number;

	if (PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner))
		return MPI_UNDEFINED;
	if (inner && (combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP))
		rc = PMPI_Type_get_contents_c(type, integers, addresses, counts, types, &number, NULL, &count, inner);
#else
	int integers, addresses, types, number;

	if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner))
		return MPI_UNDEFINED;
	if (inner && (combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP))
		rc = PMPI_Type_get_contents(type, integers, addresses, types, &number, NULL, inner);
#endif
	return rc ? MPI_UNDEFINED : combiner;
}

/* Named types without holes are, and repetitions of such. Size and extent do not tell: a
 * struct may have its fields in another order. */
int is_contiguous(MPI_Datatype type)
{
	MPI_Datatype inner;
	MPI_Aint lower, extent;
	MPI_Count size;
	int rc;

	switch (look(type, &inner)) {
	case MPI_COMBINER_NAMED:
		return !PMPI_Type_size_x(type, &size) && !PMPI_Type_get_extent(type, &lower, &extent) && lower == 0 && extent == size;
	case MPI_COMBINER_CONTIGUOUS:
	case MPI_COMBINER_DUP:
		rc = is_contiguous(inner);
		if (look(inner, NULL) != MPI_COMBINER_NAMED)
			PMPI_Type_free(&inner);
		return rc;
	}
	return 0;
}

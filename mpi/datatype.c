/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include "datatype.h"

/* Named types without holes are, and repetitions of such. Size and extent do not tell: a
 * struct may have its fields in another order. */
int is_contiguous(MPI_Datatype type)
{
	int integers, addresses, types, combiner, count, named, rc;
	MPI_Aint lower, extent;
	MPI_Count size;
	MPI_Datatype inner;

	if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner))
		return 0;
	if (combiner == MPI_COMBINER_NAMED)
		return !PMPI_Type_size_x(type, &size) && !PMPI_Type_get_extent(type, &lower, &extent) && lower == 0 && extent == size;
	if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP)
		return 0;
	if (PMPI_Type_get_contents(type, integers, addresses, types, &count, NULL, &inner))
		return 0;
	rc = is_contiguous(inner);
	if (!PMPI_Type_get_envelope(inner, &integers, &addresses, &types, &named) && named != MPI_COMBINER_NAMED)
		PMPI_Type_free(&inner);
	return rc;
}

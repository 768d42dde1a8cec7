/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>

#include <stdlib.h>

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

/* A type as from an address, which MPICH's MPI_Pack wants in place of MPI_BOTTOM: the address' distance is in it. */
static int from_address(struct packed *p, MPI_Datatype type)
{
	static char base;
	MPI_Aint at = -(MPI_Aint)&base;
	int rc = PMPI_Type_create_hindexed(1, &p->count, &at, type, &p->type);

	if (rc)
		return rc;
	p->elements = &base;
	p->count = 1;
	return PMPI_Type_commit(&p->type);
}

int packed_open(struct packed *p, void *elements, int count, MPI_Datatype type, int64_t bytes)
{
	int rc;

	*p = (struct packed){.elements = elements, .type = MPI_DATATYPE_NULL, .count = count};
	rc = elements == MPI_BOTTOM ? from_address(p, type) : PMPI_Type_dup(type, &p->type);
	if (!rc)
		rc = PMPI_Pack_size(p->count, p->type, MPI_COMM_SELF, &p->room);
	if (!rc && p->room < bytes)
		p->room = bytes;
	if (!rc)
		p->bytes = malloc(p->room);
	if (!rc && !p->bytes)
		rc = MPI_ERR_NO_MEM;
	if (rc)
		packed_close(p);
	return rc;
}

int pack_elements(struct packed *p, int64_t bytes)
{
	int at = 0, rc = PMPI_Pack(p->elements, p->count, p->type, p->bytes, p->room, &at, MPI_COMM_SELF);

	return rc || at == bytes ? rc : MPI_ERR_OTHER; /* this MPI packs data in a format of its own */
}

int unpack_elements(struct packed *p, int64_t bytes)
{
	int at = 0;

	return PMPI_Unpack(p->bytes, bytes, &at, p->elements, p->count, p->type, MPI_COMM_SELF);
}

void packed_close(struct packed *p)
{
	if (p->type != MPI_DATATYPE_NULL)
		PMPI_Type_free(&p->type);
	free(p->bytes);
	p->bytes = NULL;
}

/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Bcast as Fortran calls it. Open MPI's own wrappers call PMPI_Bcast, which bypasses
 * the symbol of C. MPICH's call MPI_Bcast and MPI_Bcast_c.
 */
#include "bcast.h"

#ifdef OPEN_MPI
#define API __attribute__((visibility("default")))

/* Each is MPI_BOTTOM to some compiler. They are absent in a program in C. */
extern int MPI_FORTRAN_BOTTOM __attribute__((weak)), mpi_fortran_bottom __attribute__((weak)),
	mpi_fortran_bottom_ __attribute__((weak)), mpi_fortran_bottom__ __attribute__((weak));

static int is_bottom(const void *buffer)
{
	return buffer && (buffer == &MPI_FORTRAN_BOTTOM || buffer == &mpi_fortran_bottom || buffer == &mpi_fortran_bottom_ ||
	                  buffer == &mpi_fortran_bottom__);
}

API void mpi_bcast_(void *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error)
{
	int rc = broadcast(is_bottom(buffer) ? MPI_BOTTOM : buffer, *count, PMPI_Type_f2c(*type), *root, PMPI_Comm_f2c(*comm));

	if (error)
		*error = rc;
}

#define SAME __attribute__((alias("mpi_bcast_"), visibility("default")))
void mpi_bcast(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *) SAME;
void mpi_bcast__(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *) SAME;
void MPI_BCAST(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *) SAME;
/* of mpi_f08 */
void ompi_bcast_f(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *) SAME;
#endif

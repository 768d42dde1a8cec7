/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Bcast, MPI_Ibcast and MPI_Barrier as Fortran calls them. Open MPI's own wrappers call PMPI_Bcast, which
 * bypasses the symbol of C. MPICH's call MPI_Bcast and MPI_Bcast_c.
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

API void mpi_ibcast_(void *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
	MPI_Request begun = MPI_REQUEST_NULL;
	int rc = broadcast_begin(is_bottom(buffer) ? MPI_BOTTOM : buffer, *count, PMPI_Type_f2c(*type), *root, PMPI_Comm_f2c(*comm), &begun);

	if (!rc)
		*request = PMPI_Request_c2f(begun);
	if (error)
		*error = rc;
}

API void mpi_barrier_(MPI_Fint *comm, MPI_Fint *error)
{
	int rc = barrier(PMPI_Comm_f2c(*comm));

	if (error)
		*error = rc;
}

#define SAME(name) __attribute__((alias(name), visibility("default")))
/* The last of each is that of mpi_f08. */
#define OF_BCAST void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *
void mpi_bcast(OF_BCAST) SAME("mpi_bcast_");
void mpi_bcast__(OF_BCAST) SAME("mpi_bcast_");
void MPI_BCAST(OF_BCAST) SAME("mpi_bcast_");
void ompi_bcast_f(OF_BCAST) SAME("mpi_bcast_");
#define OF_IBCAST OF_BCAST, MPI_Fint *
void mpi_ibcast(OF_IBCAST) SAME("mpi_ibcast_");
void mpi_ibcast__(OF_IBCAST) SAME("mpi_ibcast_");
void MPI_IBCAST(OF_IBCAST) SAME("mpi_ibcast_");
void ompi_ibcast_f(OF_IBCAST) SAME("mpi_ibcast_");
#define OF_BARRIER MPI_Fint *, MPI_Fint *
void mpi_barrier(OF_BARRIER) SAME("mpi_barrier_");
void mpi_barrier__(OF_BARRIER) SAME("mpi_barrier_");
void MPI_BARRIER(OF_BARRIER) SAME("mpi_barrier_");
void ompi_barrier_f(OF_BARRIER) SAME("mpi_barrier_");
#endif

! Copyright 2026 The Gleam Authors
! SPDX-License-Identifier: Apache-2.0
!
! MPI_Bcast, and MPI_Ibcast, as programs in Fortran call them: by mpif.h, and by the modules mpi and
! mpi_f08; each root in turn, and data by its absolute address from MPI_BOTTOM.

subroutine by_mpif(rank, root, checked)
  implicit none
  include 'mpif.h'
  integer :: rank, root, checked, ierr, i, request
  integer, asynchronous :: values(5000)

  values = -1
  if (rank == root) values = [(i * (root + 1), i = 1, 5000)]
  call MPI_BCAST(values, 5000, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
  if (ierr /= MPI_SUCCESS .or. any(values /= [(i * (root + 1), i = 1, 5000)])) call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
  values = -1
  if (rank == root) values = [(i * (root + 2), i = 1, 5000)]
  call MPI_IBCAST(values, 5000, MPI_INTEGER, root, MPI_COMM_WORLD, request, ierr)
  call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
  if (ierr /= MPI_SUCCESS .or. any(values /= [(i * (root + 2), i = 1, 5000)])) call MPI_ABORT(MPI_COMM_WORLD, 4, ierr)
  checked = checked + 2
end subroutine

subroutine by_module(rank, root, checked)
  use mpi
  implicit none
  integer :: rank, root, checked, ierr, i, type
  double precision, save, asynchronous, target :: values(0:9999)
  integer(MPI_ADDRESS_KIND) :: at(1)

  values = -1
  if (rank == root) values = [(i + 0.5d0 * root, i = 0, 9999)]
  call MPI_GET_ADDRESS(values, at(1), ierr)
  call MPI_TYPE_CREATE_HINDEXED(1, [10000], at, MPI_DOUBLE_PRECISION, type, ierr)
  call MPI_TYPE_COMMIT(type, ierr)
  call MPI_BCAST(MPI_BOTTOM, 1, type, root, MPI_COMM_WORLD, ierr)
  call MPI_TYPE_FREE(type, i)
  if (ierr /= MPI_SUCCESS .or. any(values /= [(i + 0.5d0 * root, i = 0, 9999)])) call MPI_ABORT(MPI_COMM_WORLD, 2, ierr)
  checked = checked + 1
end subroutine

program bcast
  use mpi_f08
  implicit none
  integer :: rank, ranks, root, checked, i
  real, asynchronous :: values(300, 300)
  type(MPI_Comm) :: back
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  checked = 0
  do root = 0, ranks - 1
    call by_mpif(rank, root, checked)
    call by_module(rank, root, checked)
    values = -1
    if (rank == root) values = reshape([(real(mod(i, 1000) + root), i = 1, 90000)], [300, 300])
    call MPI_Bcast(values, 90000, MPI_REAL, root, MPI_COMM_WORLD)
    if (any(values /= reshape([(real(mod(i, 1000) + root), i = 1, 90000)], [300, 300]))) call MPI_Abort(MPI_COMM_WORLD, 3)
    if (rank == root) values = values + 1
    call MPI_Ibcast(values, 90000, MPI_REAL, root, MPI_COMM_WORLD, request)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(values /= reshape([(real(mod(i, 1000) + root + 1), i = 1, 90000)], [300, 300]))) call MPI_Abort(MPI_COMM_WORLD, 5)
    checked = checked + 2
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, back)
  call MPI_Bcast(values, 90000, MPI_REAL, 0, back)
  call MPI_Comm_free(back)
  if (rank == 0) print '(a,i0,a)', 'ok: ', checked + 1, ' broadcasts'
  call MPI_Finalize()
end program

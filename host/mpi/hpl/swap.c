/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The row swap along the columns of the grid. HPL_pdlaswp01T and N, which stay, call in turn
 *
 *   spread    the current row of processes has rows of U that leave it: each goes to the
 *             process whose row takes its place
 *   dlaswp06  there it is exchanged for that row, which becomes part of U
 *   equil     evens the parts
 *   roll      gives all parts of U to all
 *
 * Here the rows that leave are under way while the others broadcast their parts of U, each by
 * MPI_Bcast: dlaswp06 exchanges the rows of U for memory without contents, and once more when
 * the rows have come. So the current row's link carries what leaves it while the links of the
 * others carry U. T is the form in which rows of U are contiguous, N the other one.
 */
#include <stdlib.h>

#include "hpl_run.h"

typedef void spread(HPL_T_panel *, int *, HPL_T_panel *, const enum HPL_SIDE, const int, double *, const int, const int, const int *,
                    const int *, const int *);
typedef void roll(HPL_T_panel *, int *, HPL_T_panel *, const int, double *, const int, const int *, const int *, const int *);
typedef void exchange(const int, const int, double *, const int, double *, const int, const int *);
typedef void swap(HPL_T_panel *, int *, HPL_T_panel *, const int);

spread __real_HPL_spreadT, __real_HPL_spreadN, __wrap_HPL_spreadT, __wrap_HPL_spreadN;
roll __real_HPL_rollT, __real_HPL_rollN, __wrap_HPL_rollT, __wrap_HPL_rollN;
exchange __real_HPL_dlaswp06T, __real_HPL_dlaswp06N, __wrap_HPL_dlaswp06T, __wrap_HPL_dlaswp06N;
swap __real_HPL_pdlaswp00T, __real_HPL_pdlaswp00N, __wrap_HPL_pdlaswp00T, __wrap_HPL_pdlaswp00N;
void __real_HPL_equil(HPL_T_panel *, int *, HPL_T_panel *, const enum HPL_TRANS, const int, double *, const int, int *, const int *, const int *, int *);

enum form { ROWS_CONTIGUOUS /* T */, COLUMNS_CONTIGUOUS /* N */ };

/* The row swap that is under way. */
static struct {
	double *rows; /* that leave the current row: all at that process, its own at another one */
	size_t room;  /* of it */
	MPI_Request *requests;
	int count;
	/* dlaswp06's, at the others */
	double *a;
	int width, lda;
	const int *index;
} now;

static void reserve(size_t doubles, int ranks)
{
	if (doubles > now.room) {
		free(now.rows);
		now.rows = malloc(doubles * sizeof *now.rows);
		now.room = doubles;
	}
	now.requests = realloc(now.requests, ranks * sizeof *now.requests);
	if (!now.requests || (!now.rows && doubles))
		HPL_pabort(__LINE__, "reserve", "no memory for a row swap");
	now.count = 0;
}

/* Begins to send each rank its rows, or to receive them. */
static void send_rows(enum form form, HPL_T_panel *p, int n, const double *u, int ldu, const int *len, const int *map, const int *place)
{
	int me = place[p->grid->myrow], ranks = p->grid->nprow, first = me ? me : 1, last = me ? me + 1 : ranks;

	reserve((size_t)(len[last] - len[first]) * n, ranks);
	for (int k = first; k < last; k++) {
		int m = len[k + 1] - len[k];
		double *rows = now.rows + (size_t)(len[k] - len[first]) * n;

		if (m <= 0)
			continue;
		if (me) {
			MPI_Irecv(rows, m * n, MPI_DOUBLE, map[0], MSGID_BEGIN_PFACT, p->grid->col_comm, &now.requests[now.count++]);
			continue;
		}
		/* A copy: the parts of the others come to where these are. */
		if (form == ROWS_CONTIGUOUS)
			HPL_dlacpy(n, m, Mptr(u, 0, len[k], ldu), ldu, rows, n);
		else
			HPL_dlacpy(m, n, Mptr(u, len[k], 0, ldu), ldu, rows, m);
		MPI_Isend(rows, m * n, MPI_DOUBLE, map[k], MSGID_BEGIN_PFACT, p->grid->col_comm, &now.requests[now.count++]);
	}
}

static void broadcast_part(enum form form, HPL_T_panel *p, int n, double *u, int ldu, int m, int root)
{
	MPI_Datatype part;
	double bytes = 8. * m * n;

	if (form == ROWS_CONTIGUOUS) { /* ldu is n, as HPL has it */
		run_broadcast(&swaps, u, m * n, MPI_DOUBLE, bytes, root, p->grid->col_comm);
		return;
	}
	MPI_Type_vector(n, m, ldu, MPI_DOUBLE, &part);
	MPI_Type_commit(&part);
	run_broadcast(&swaps, u, 1, part, bytes, root, p->grid->col_comm);
	MPI_Type_free(&part);
}

/* The current row's part is the last: its link has been busy with the rows that leave. */
static void broadcast_parts(enum form form, HPL_T_panel *p, int n, double *u, int ldu, const int *len, const int *map)
{
	int ranks = p->grid->nprow;

	for (int i = 1; i <= ranks; i++) {
		int k = i % ranks;
		double *part = form == ROWS_CONTIGUOUS ? Mptr(u, 0, len[k], ldu) : Mptr(u, len[k], 0, ldu);

		broadcast_part(form, p, n, part, ldu, len[k + 1] - len[k], map[k]);
	}
}

static void take_rows(enum form form, HPL_T_panel *p, int n, const int *len, const int *place)
{
	int me = place[p->grid->myrow], m = len[me + 1] - len[me];

	if (MPI_Waitall(now.count, now.requests, MPI_STATUSES_IGNORE))
		HPL_pabort(__LINE__, "take_rows", "rows of a row swap have not come");
	if (!me || m <= 0)
		return;
	if (form == ROWS_CONTIGUOUS)
		__real_HPL_dlaswp06T(m, now.width, now.a, now.lda, now.rows, n, now.index);
	else
		__real_HPL_dlaswp06N(m, now.width, now.a, now.lda, now.rows, m, now.index);
}

static int in_equil; /* HPL's own: it spreads, too */

static void any_spread(enum form form, spread *real, HPL_T_panel *panel, int *flag, HPL_T_panel *p, const enum HPL_SIDE side, int n,
                       double *u, int ldu, int source, const int *len, const int *map, const int *place)
{
	if (!in_equil) {
		run_align(p->grid->col_comm);
		phase_begin(&swaps);
	}
	if (run_own())
		real(panel, flag, p, side, n, u, ldu, source, len, map, place);
	else
		send_rows(form, p, n, u, ldu, len, map, place);
}

static void any_roll(enum form form, roll *real, HPL_T_panel *panel, int *flag, HPL_T_panel *p, int n, double *u, int ldu,
                     const int *len, const int *map, const int *place)
{
	if (run_own()) {
		real(panel, flag, p, n, u, ldu, len, map, place);
	} else {
		broadcast_parts(form, p, n, u, ldu, len, map);
		take_rows(form, p, n, len, place);
	}
	phase_end(&swaps, 8. * n * len[p->grid->nprow]);
}

void __wrap_HPL_spreadT(HPL_T_panel *panel, int *flag, HPL_T_panel *p, const enum HPL_SIDE side, const int n, double *u, const int ldu,
                        const int source, const int *len, const int *map, const int *place)
{
	any_spread(ROWS_CONTIGUOUS, __real_HPL_spreadT, panel, flag, p, side, n, u, ldu, source, len, map, place);
}

void __wrap_HPL_spreadN(HPL_T_panel *panel, int *flag, HPL_T_panel *p, const enum HPL_SIDE side, const int n, double *u, const int ldu,
                        const int source, const int *len, const int *map, const int *place)
{
	any_spread(COLUMNS_CONTIGUOUS, __real_HPL_spreadN, panel, flag, p, side, n, u, ldu, source, len, map, place);
}

void __wrap_HPL_rollT(HPL_T_panel *panel, int *flag, HPL_T_panel *p, const int n, double *u, const int ldu, const int *len, const int *map,
                      const int *place)
{
	any_roll(ROWS_CONTIGUOUS, __real_HPL_rollT, panel, flag, p, n, u, ldu, len, map, place);
}

void __wrap_HPL_rollN(HPL_T_panel *panel, int *flag, HPL_T_panel *p, const int n, double *u, const int ldu, const int *len, const int *map,
                      const int *place)
{
	any_roll(COLUMNS_CONTIGUOUS, __real_HPL_rollN, panel, flag, p, n, u, ldu, len, map, place);
}

static void any_exchange(exchange *real, int m, int n, double *a, int lda, double *u, int ldu, const int *index)
{
	now.a = a;
	now.width = n;
	now.lda = lda;
	now.index = index;
	real(m, n, a, lda, u, ldu, index);
}

void __wrap_HPL_dlaswp06T(const int m, const int n, double *a, const int lda, double *u, const int ldu, const int *index)
{
	any_exchange(__real_HPL_dlaswp06T, m, n, a, lda, u, ldu, index);
}

void __wrap_HPL_dlaswp06N(const int m, const int n, double *a, const int lda, double *u, const int ldu, const int *index)
{
	any_exchange(__real_HPL_dlaswp06N, m, n, a, lda, u, ldu, index);
}

void __wrap_HPL_equil(HPL_T_panel *panel, int *flag, HPL_T_panel *p, const enum HPL_TRANS form, const int n, double *u, const int ldu, int *len,
                      const int *map, const int *place, int *work)
{
	if (!run_own())
		return; /* broadcasts need no even parts */
	in_equil = 1;
	__real_HPL_equil(panel, flag, p, form, n, u, ldu, len, map, place, work);
	in_equil = 0;
}

/* The binary exchange, for few columns: the same by broadcasts. */
void __wrap_HPL_pdlaswp00T(HPL_T_panel *panel, int *flag, HPL_T_panel *p, const int n)
{
	(run_own() ? __real_HPL_pdlaswp00T : HPL_pdlaswp01T)(panel, flag, p, n);
}

void __wrap_HPL_pdlaswp00N(HPL_T_panel *panel, int *flag, HPL_T_panel *p, const int n)
{
	(run_own() ? __real_HPL_pdlaswp00N : HPL_pdlaswp01N)(panel, flag, p, n);
}

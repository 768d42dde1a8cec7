/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The panel broadcast along the rows of the grid: one MPI_Bcast in place of HPL's rings.
 */
#include <sched.h>

#include "hpl_run.h"

int __real_HPL_binit(HPL_T_panel *panel);
int __real_HPL_bcast(HPL_T_panel *panel, int *flag);

static int under_way; /* HPL_bcast has been called for the panel, and not been done */

int __wrap_HPL_binit(HPL_T_panel *panel)
{
	int rc = __real_HPL_binit(panel); /* copies the panel to where it is contiguous */

	if (panel->grid->npcol > 1)
		run_align(panel->grid->row_comm);
	under_way = 0;
	return rc;
}

/* HPL calls it until the flag is HPL_SUCCESS, and computes meanwhile if it is
 * HPL_KEEP_TESTING. All ranks of a row call it for the first time before they communicate along
 * columns, so that a broadcast which ends in the first call cannot be waited for in a circle. */
int __wrap_HPL_bcast(HPL_T_panel *panel, int *flag)
{
	if (!panel || panel->grid->npcol <= 1)
		return *flag = HPL_SUCCESS;
	if (!under_way)
		phase_begin(&panels);
	under_way = 1;
	if (run_own()) {
		__real_HPL_bcast(panel, flag);
		if (*flag == HPL_KEEP_TESTING)
			sched_yield(); /* as the group does while it waits: ranks share CPUs */
	} else {
		run_broadcast(&panels, panel->L2, panel->len, MPI_DOUBLE, panel->len * 8., panel->pcol, panel->grid->row_comm);
		*flag = HPL_SUCCESS;
	}
	if (*flag != HPL_KEEP_TESTING) {
		phase_end(&panels, panel->len * 8.);
		under_way = 0;
	}
	return *flag;
}

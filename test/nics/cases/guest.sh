# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# guest.sh MACHINE PORTS all|quick EXPRESSION runs a machine's cases in the guest.
MACHINE=$1 ONLY=$4
# shellcheck source=test/nics/cases/lib.sh
. /tmp/bin/lib.sh
# shellcheck source=/dev/null
. "/tmp/bin/$MACHINE.sh"
exec 2>>/host/errors
machine "$2"
"$3"
stop
cp $W/monitor /host/
exit $bad

#!/bin/sh
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh GROUP_IP HOST:PORT MASTER_DEVICE MEMBER_DEVICE... runs multicast, which
# is looked for in PATH and beside, with all members on this machine. HOST:PORT
# is an address of the master's, GID_INDEX (1) that of all devices, GLEAM_KEY as
# in multicast.c. It ends with 0 if the master and every member did.
set -u
group=$1 exchange=$2 master=$3
shift 3
PATH=$PATH:${0%/*}:${0%/*}/../build
index=${GID_INDEX:-1}
export OTHER_NETWORK=1 # on one machine the exchange does not leave from the members' addresses
pids=""
for device in "$@"; do
	multicast member "$device" "$index" "$exchange" &
	pids="$pids $!"
done
rc=0
multicast master "$master" "$index" "$exchange" "$group" $# || rc=1
for p in $pids; do
	wait "$p" || rc=1
done
exit $rc

# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a group find its hub: the torch Store has host, port and token under the
group's number. The first hub is rank 0's; one after a hub that is lost is made by whichever rank
claims the next number first, and the lower ranks have the earlier turns."""
import json
import os
import socket
import time

KEY = "gleam_torch/hub"
TURN = 1.0  # seconds for which a rank leaves the next number to each lower one that was a member
MAKING = 3.0  # seconds from a claim to its hub's place: then who has claimed is lost as well


class Meeting:
    """The places of the hubs of one process group."""

    def __init__(self, store):
        self.store = store

    def there(self, number):
        return self.store.add("%s/%d/there" % (KEY, number), 0) > 0  # a get that waits would hold up every other thread

    def publish(self, number, at, token):
        self.store.set("%s/%d" % (KEY, number), json.dumps([*at, token]))
        self.store.add("%s/%d/there" % (KEY, number), 1)

    def place(self, number):
        host, port, token = json.loads(self.store.get("%s/%d" % (KEY, number)))
        return (host, port), token

    def wait(self, number, limit):
        begin = time.monotonic()
        while not self.there(number):
            if time.monotonic() > begin + limit:
                raise RuntimeError("rank 0 of the group has not come")
            time.sleep(0.005)
        return self.place(number)

    def latest(self):
        """The number of the newest hub; 0 if there is none."""
        number = 0
        while self.there(number + 1) or self.there(number + 2):  # who claims one may be lost before it is made
            number += 1
        return number

    def next(self, number, turn, serve):
        """The hub after number: (number, place, server). serve(number) makes one here."""
        where = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
        if all(where):
            socket.create_connection(where, 2).close()  # the Store itself would wait for very long
        while True:
            number, begin, claimed = number + 1, time.monotonic(), False
            while time.monotonic() < begin + turn * TURN + MAKING:
                if self.there(number):
                    return number, self.place(number)[0], None
                if not claimed and time.monotonic() >= begin + turn * TURN:
                    claimed = True
                    if self.store.add("%s/%d/claim" % (KEY, number), 1) == 1:
                        server, at, token = serve(number)
                        self.publish(number, at, token)
                        return number, at, server
                time.sleep(0.01)

// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0
//
// A member of a group in C++: participant-cpp IP QPN KEYHEX MASTER.
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gleam.hpp"

static std::vector<uint8_t> from_hex(const char *hex)
{
	std::vector<uint8_t> b;
	unsigned x;

	for (; hex[0] && hex[1] && std::sscanf(hex, "%2x", &x) == 1; hex += 2)
		b.push_back(static_cast<uint8_t>(x));
	return b;
}

int main(int argc, char **argv)
{
	using namespace std::chrono_literals;

	if (argc != 5)
		return 2;
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	try {
		gleam::Group refused(gleam::master("", {}, 0, "10.77.254.1", 0));
	} catch (const gleam::Error &e) {
		std::printf("refused %d %s\n", e.code(), e.what());
	}
	try {
		gleam_qp qp{};
		qp.gid[10] = qp.gid[11] = 0xff;
		inet_pton(AF_INET, argv[1], qp.gid + 12);
		qp.qp_num = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 0));
		gleam_mr mr{0x7f0000000000, 1 << 20, 7};
		gleam::Group first(gleam::member(argv[4], from_hex(argv[3]), 1));
		gleam::Group g = std::move(first);
		gleam::Peer peer = g.join(qp, &mr, 20s);
		std::printf("peer %s\n", peer.ip);
		g.connected();
		gleam::Window w = g.wait(20s);
		std::printf("registered %u members\n", w.members);
		if (auto e = g.next_event(5s))
			std::printf("event %u %s\n", e->kind, e->text);
		g.leave(10s);
		std::printf("gone\n");
	} catch (const gleam::Error &e) {
		std::printf("error %d %s\n", e.code(), e.what());
		return 1;
	}
}

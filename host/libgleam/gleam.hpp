// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0
//
// gleam.h for C++17: a Group leaves and is freed at the end of its scope, and failures
// are exceptions. Header only; link with -lgleam.
//
//     gleam::Group g(gleam::member("10.0.0.1:7100", key, 1));
//     gleam::Peer peer = g.join(qp, &mr);
//     ...                                  // ibv_modify_qp
//     g.connected();
//     gleam::Window window = g.wait();
#ifndef GLEAM_HPP
#define GLEAM_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gleam.h"

namespace gleam {

using Milliseconds = std::chrono::milliseconds;

// The types whose names are functions' too.
using Peer = struct ::gleam_peer;
using Window = struct ::gleam_window;

// For calls that wait for ever.
constexpr Milliseconds forever{-1};

// A failure of a call: the text of gleam_error(), and a negative errno value.
class Error : public std::runtime_error {
public:
	explicit Error(int code) : std::runtime_error(gleam_error()), code_(code) {}
	int code() const noexcept { return code_; }

private:
	int code_;
};

// What a gleam_attr says, with memory of its own.
struct Config {
	gleam_attr attr{};
	std::string exchange, group_ip; // empty: none
	std::vector<uint8_t> key;       // empty: GLEAM_INSECURE
};

inline Config member(std::string_view exchange, std::vector<uint8_t> key, uint16_t key_id)
{
	Config c;
	c.attr.role = GLEAM_MEMBER;
	c.attr.key_id = key_id;
	c.exchange = exchange;
	c.key = std::move(key);
	return c;
}

inline Config master(std::string_view exchange, std::vector<uint8_t> key, uint16_t key_id, std::string_view group_ip, uint32_t members)
{
	Config c = member(exchange, std::move(key), key_id);
	c.attr.role = GLEAM_MASTER;
	c.attr.members = members;
	c.group_ip = group_ip;
	return c;
}

class Group {
public:
	explicit Group(Config c)
	{
		c.attr.size = sizeof c.attr;
		c.attr.exchange = c.exchange.empty() ? nullptr : c.exchange.c_str();
		c.attr.group_ip = c.group_ip.empty() ? nullptr : c.group_ip.c_str();
		c.attr.key = c.key.empty() ? nullptr : c.key.data();
		c.attr.key_len = static_cast<uint32_t>(c.key.size());
		if (c.key.empty())
			c.attr.flags |= GLEAM_INSECURE;
		g_ = gleam_create(&c.attr);
		if (!g_)
			throw Error(-22);
	}
	~Group() { gleam_destroy(g_); }
	Group(const Group &) = delete;
	Group &operator=(const Group &) = delete;
	Group(Group &&o) noexcept : g_(std::exchange(o.g_, nullptr)) {}
	Group &operator=(Group &&o) noexcept
	{
		std::swap(g_, o.g_);
		return *this;
	}

	Peer join(const gleam_qp &qp, const gleam_mr *mr = nullptr, Milliseconds timeout = forever)
	{
		Peer peer;
		check(gleam_join(g_, &qp, mr, &peer, ms(timeout)));
		return peer;
	}
	std::vector<uint8_t> export_blob(const gleam_qp &qp, const gleam_mr *mr = nullptr)
	{
		std::vector<uint8_t> b(GLEAM_BLOB_MAX);
		b.resize(static_cast<size_t>(check(gleam_export(g_, &qp, mr, b.data(), b.size()))));
		return b;
	}
	void import_blob(const std::vector<uint8_t> &b) { check(gleam_import(g_, b.data(), b.size())); }
	std::vector<uint8_t> describe()
	{
		std::vector<uint8_t> b(GLEAM_BLOB_MAX);
		b.resize(static_cast<size_t>(check(gleam_describe(g_, b.data(), b.size()))));
		return b;
	}
	Peer peer() const
	{
		Peer p;
		check(::gleam_peer(g_, &p));
		return p;
	}
	void connected() { check(gleam_connected(g_, nullptr)); }
	void not_connected(const std::string &why) { check(gleam_connected(g_, why.c_str())); }
	Window wait(Milliseconds timeout = forever)
	{
		Window w;
		check(gleam_wait(g_, &w, ms(timeout)));
		return w;
	}
	bool progress() { return check(gleam_progress(g_)) == 1; }
	std::optional<gleam_event> next_event(Milliseconds timeout = Milliseconds(0))
	{
		gleam_event e;
		if (check(gleam_next_event(g_, &e, ms(timeout))) == 0)
			return std::nullopt;
		return e;
	}
	void update(Milliseconds timeout = forever) { check(gleam_update(g_, ms(timeout))); }
	void remove(const std::string &ip, Milliseconds timeout = forever) { check(gleam_remove(g_, ip.c_str(), ms(timeout))); }
	void leave(Milliseconds timeout = forever) { check(gleam_leave(g_, ms(timeout))); }
	int fd() const { return check(gleam_fd(g_)); }
	gleam_group *handle() const noexcept { return g_; }

private:
	static int check(int rc)
	{
		if (rc < 0)
			throw Error(rc);
		return rc;
	}
	static int ms(Milliseconds t) { return static_cast<int>(t.count()); }
	gleam_group *g_ = nullptr;
};

} // namespace gleam

#endif

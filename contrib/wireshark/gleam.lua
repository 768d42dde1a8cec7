-- Copyright 2026 The Gleam Authors
-- SPDX-License-Identifier: Apache-2.0

-- Wireshark dissector of what Gleam sends besides RDMA:
--   gleam         messages between hosts and switch, UDP port 4797 (PROTOCOL.md §2)
--   gleam.relay   messages about groups between switches, the same port (PROTOCOL.md §12)
--   gleam.token   messages about who may send, between switches, the same port (docs/TREES.md)
--   gleam.hello   hellos between switches, EtherType 0x88B5 (PROTOCOL.md §11)
--   gleam.targets target messages: payloads of WRITEs to the switch (PROTOCOL.md §10)
-- Envelopes and relays are recognised at other ports too, by their magic.

local envelope = Proto("gleam", "Gleam registration")
local relay = Proto("gleam.relay", "Gleam registration between switches")
local token = Proto("gleam.token", "Gleam token between switches")
local hello = Proto("gleam.hello", "Gleam hello between switches")
local targets = Proto("gleam.targets", "Gleam target message")

local PORT, ETHERTYPE = 4797, 0x88B5

local types = {"Register", "Leave", "Delete", "Renew", "Accept", "Reject", "Challenge", "Notify", "Confirm", "Gone", "Ack", "Where", "Here", "Notice"}
local kinds = {"Prepare", "Prepared", "Refused", "Commit", "Committed", "End", "Ended", "Renew", "Renewed", "Gone", "Noted", "Rebuild", "Rebuilds"}
local policies = {[0] = "strict", "evict", "quorum"}
local statuses = {[0] = "confirmed", "has not joined the group", "has another QPN", "has another sq_psn", "has another rq_psn", "is connected to another virtual QPN", "has another path MTU",
	"has another WRITE window"}
local notices = {"stalled", "resumed", "failed"}
local causes = {"deleted", "lease expired", "replaced by a newer epoch", "left", "removed by the master", "evicted", "group failed", "a switch of the tree was lost",
	"its address is in no group prefix of a switch any more", "the switch has started again and does not know it"}
local reasons = {"unknown member location", "path MTU mismatch", "table full", "bad authentication", "overlapping members", "stale epoch", "same epoch with other content", "bad window",
	"not a group prefix", "malformed", "too many members", "too few members", "IP family mismatch", "invalid member", "invalid virtual QPN", "unknown group", "not allowed", "update of another epoch",
	"a member has gone meanwhile; to come back it needs fresh PSNs", "an update cannot change this", "bad policy", "bad dead_after", "quota of the key exceeded", "stale transaction",
	"a queue pair with these numbers has carried traffic: register the PSNs that it has now (ibv_query_qp), or restart it with other ones",
	"the group belongs to another key, or to the operator, who can end it (gleam group delete)", "epoch too far ahead",
	"the key is not for this: its roles in the switch's configuration say what it may ask", "the key is not for this group address: its prefixes in the switch's configuration say for which",
	"every member is registered to receive only: nobody could send", "the member has not confirmed its location", "no next hop toward the member is a gleamd switch",
	"a switch of the tree does not answer", "the routes lead to a switch from two sides", "too many switches one behind another", "not possible where members are at several switches",
	"a switch of the tree does not have the group's key", "the group was registered by way of another switch: its master has to ask there", "another master registers the group at the same time",
	"the switch serves only groups that can take its fast path (fast_path: require)",
	"the switch cannot write its state file, and takes no new members until it can: after a restart it would not know them",
	"the group exists: take another address"}
local extensions = {"API address"}

-- Fields by name, made at their first mention below; all are of one table so that none has two types.
local F, list = {}, {[envelope] = {}, [relay] = {}, [token] = {}, [hello] = {}, [targets] = {}}
local makers = {ip4 = "ipv4", ip6 = "ipv6", mac = "ether", bytes = "bytes", string = "string", bool = "bool", u8 = "uint8", u16 = "uint16", u24 = "uint24", u32 = "uint32", u64 = "uint64"}
local function field(proto, abbr, title, kind, base, values)
	local make = ProtoField[makers[kind]]
	local f
	if kind == "bool" then f = make(abbr, title, 8, nil, base) -- base is the mask
	elseif base then f = make(abbr, title, base, values)
	else f = make(abbr, title) end
	F[abbr] = f
	table.insert(list[proto], f)
end
local D, H, X = base.DEC, base.HEX, base.DEC_HEX
local function fields(proto, prefix, defs)
	for _, d in ipairs(defs) do field(proto, prefix .. d[1], d[2], d[3], d[4], d[5]) end
end

fields(envelope, "gleam.", {
	{"magic", "Magic", "string"}, {"version", "Version", "u8", D}, {"type", "Type", "u8", D, types}, {"key", "Key ID", "u16", D},
	{"flags", "Flags", "u8", H}, {"flags.ipv6", "IPv6", "bool", 0x01}, {"flags.relayed", "Relayed by a switch", "bool", 0x02},
	{"hops", "Hops", "u8", D}, {"length", "Length", "u16", D}, {"epoch", "Epoch", "u64", D}, {"instance", "Instance", "u64", H},
	{"transaction", "Transaction", "u32", H}, {"seq", "Segment", "u16", D}, {"total", "Segments", "u16", D},
	{"group", "GroupIP", "ip4"}, {"group6", "GroupIP", "ip6"}, {"reply_to", "ReplyTo", "ip4"}, {"reply_to6", "ReplyTo", "ip6"}, {"reply_port", "ReplyTo port", "u16", D},
	{"mac", "HMAC-SHA-256", "bytes"}, {"request", "Type of the request", "u8", D, types},
	{"content", "What follows", "u8", H}, {"content.window", "Group window", "bool", 0x01}, {"content.update", "Update of an epoch", "bool", 0x02},
	{"content.policy", "Details of the policy", "bool", 0x04}, {"content.target_key", "Target key", "bool", 0x08}, {"content.no_repair", "No local repair", "bool", 0x10}, {"content.exclusive", "No replacement", "bool", 0x20},
	{"policy", "Policy", "u8", D, policies}, {"virtual_qpn", "Virtual QPN", "u24", H}, {"path_mtu", "Path MTU", "u16", D}, {"members", "Members", "u16", D},
	{"dead_after", "dead_after (ns)", "u64", D}, {"lease", "Lease (ns)", "u64", D}, {"base_epoch", "Epoch that is updated", "u64", D},
	{"quorum", "Quorum", "u16", D}, {"lag_psns", "Lag limit (PSNs)", "u24", D}, {"lag_time", "Lag limit (ns)", "u64", D},
	{"timeout", "Sender's ACK timeout exponent", "u8", D}, {"retries", "Sender's retry count", "u8", D}, {"target_key", "Target key", "u32", H},
	{"window.base", "Window base", "u64", H}, {"window.length", "Window length", "u64", D}, {"window.r_key", "Window R_Key", "u32", H},
	{"section.flags", "Section flags", "u8", H}, {"section.flags.sq", "Each record has its sq_psn", "bool", 0x01}, {"section.flags.rq", "Each record has its rq_psn", "bool", 0x02},
	{"section.flags.windows", "Some records have a window", "bool", 0x04}, {"section.flags.receive_only", "Some members only receive", "bool", 0x08},
	{"section.prefix_length", "Common bytes of addresses", "u8", D}, {"section.count", "Records", "u16", D}, {"section.prefix", "Common address bytes", "bytes"},
	{"section.windows", "Records with a window (bitmap)", "bytes"}, {"section.receive_only", "Members that only receive (bitmap)", "bytes"},
	{"member", "Member", "ip4"}, {"member6", "Member", "ip6"}, {"member.suffix", "Address suffix", "bytes"}, {"qpn", "QPN", "u24", H},
	{"sq_psn", "sq_psn", "u24", H}, {"rq_psn", "rq_psn", "u24", H}, {"receive_only", "Only receives", "string"},
	{"reason", "Reason", "u8", D, reasons}, {"value", "Value", "u64", X}, {"known", "Newest known epoch", "u64", D}, {"status", "Status", "u8", D, statuses},
	{"why", "Why", "u8", D, causes}, {"code", "Code", "u8", H}, {"psn", "PSN", "u24", H}, {"nonce", "Nonce", "bytes"}, {"notice", "Notice", "u8", D, notices}, {"serial", "Serial", "u64", D},
	{"link.switch", "Switch that lost its neighbour", "u64", H}, {"link.neighbour", "Neighbour that was lost", "u64", H},
	{"link.port_length", "Length of the port's name", "u8", D}, {"link.port", "Port", "string"}, {"rest", "Unknown", "bytes"},
})
fields(relay, "gleam.relay.", {
	{"magic", "Magic", "string"}, {"version", "Version", "u8", D}, {"kind", "Kind", "u8", D, kinds}, {"key", "Key ID", "u16", D},
	{"flags", "Flags", "u8", H}, {"flags.ipv6", "IPv6", "bool", 0x01}, {"flags.proof", "Proof of the group's key", "bool", 0x02}, {"hops", "Hops", "u8", D}, {"length", "Length", "u16", D},
	{"sender", "Sender's switch ID", "u64", H}, {"session", "Session", "u64", H}, {"sequence", "Sequence number", "u64", D}, {"root", "Root's switch ID", "u64", H},
	{"attempt", "Attempt", "u64", H}, {"epoch", "Epoch", "u64", D}, {"seq", "Segment", "u16", D}, {"total", "Segments", "u16", D},
	{"group", "GroupIP", "ip4"}, {"group6", "GroupIP", "ip6"}, {"proof", "Proof of the group's key", "bytes"}, {"mac", "HMAC-SHA-256", "bytes"}, {"rest", "Unknown", "bytes"},
	{"group_key", "Key ID of the group", "u16", D}, {"master", "Master", "ip4"}, {"master6", "Master", "ip6"}, {"master_port", "Master's port", "u16", D},
	{"transaction", "Transaction", "u32", H}, {"left", "Time left (ns)", "u64", D}, {"origin", "Epoch of the life's beginning", "u64", D},
	{"generation", "Number of the attempt", "u64", D}, {"known", "Highest member number before", "u32", D}, {"behind", "Members behind the receiver (bitmap)", "bytes"},
	{"each", "Each member's number follows", "u8", D}, {"member_number", "Member number", "u32", D}, {"levels", "Levels of switches", "u8", D},
	{"diameter", "Links between the switches furthest apart", "u8", D}, {"reasons", "Number of reasons", "u8", D}, {"lacking", "A switch has not installed it", "u8", D},
	{"number", "Number", "u32", D}, {"lease", "Lease (ns)", "u64", D}, {"notify", "Members to notify", "u8", D, {[0] = "those listed", "all", "new ones"}},
})
fields(token, "gleam.token.", {
	{"version", "Version", "u8", D}, {"flags", "Flags", "u8", H}, {"flags.poll", "Poll", "bool", 0x01}, {"flags.joined", "Joined", "bool", 0x02},
	{"flags.suspended", "Suspended", "bool", 0x04}, {"flags.requests", "Requests", "bool", 0x08}, {"flags.doubtful", "Doubtful", "bool", 0x10}, {"flags.ends", "PSN ends a message", "bool", 0x20}, {"flags.over", "To a downstream end: nothing is sent before PSN; to an upstream end: no position is known", "bool", 0x40},
	{"reserved", "Reserved", "u16", H}, {"group", "Group", "ip6"}, {"session", "Session", "u64", H}, {"seq", "Sequence number", "u64", D}, {"ack", "Acknowledged", "u64", D},
	{"term", "Term", "u64", D}, {"outdated", "Outdated term", "u64", D}, {"crossings", "Crossings", "u64", D}, {"member", "Member number", "u32", D},
	{"source", "Source's member number", "u32", D}, {"psn", "PSN", "u32", H}, {"needed", "Needed source", "u32", D}, {"layout", "Layout", "u32", D}, {"next", "Next PSN", "u32", H}, {"mac", "HMAC-SHA-256", "bytes"},
})
fields(hello, "gleam.hello.", {
	{"magic", "Magic", "string"}, {"version", "Version", "u8", D}, {"max_version", "Max version", "u8", D}, {"key", "Key ID", "u16", D}, {"interval", "Interval (ms)", "u16", D},
	{"length", "Length", "u16", D}, {"capabilities", "Capabilities", "u32", H}, {"switch", "Switch ID", "u64", H}, {"incarnation", "Incarnation", "u64", H}, {"seq", "Sequence number", "u64", D},
	{"port", "Port", "u32", D}, {"address", "MAC address", "mac"}, {"neighbours", "Neighbours", "u8", D}, {"reserved", "Reserved", "u8", D}, {"ipv4", "IPv4 address", "ip4"}, {"ipv6", "IPv6 address", "ip6"},
	{"mtu", "MTU", "u32", D}, {"neighbour.switch", "Switch ID", "u64", H}, {"neighbour.incarnation", "Incarnation", "u64", H}, {"neighbour.challenge", "Challenge", "u64", H}, {"neighbour.echo", "Echo", "u64", H},
	{"extension.type", "Extension", "u8", D, extensions}, {"extension.length", "Length of the value", "u8", D}, {"extension.value", "Value", "bytes"},
	{"api.address", "API address", "ip6"}, {"api.port", "API port", "u16", D}, {"mac", "HMAC-SHA-256", "bytes"}, {"padding", "Padding", "bytes"},
})
fields(targets, "gleam.targets.", {
	{"magic", "Magic", "string"}, {"version", "Version", "u8", D}, {"family", "IP family", "u8", D}, {"member", "Member", "ip4"}, {"member6", "Member", "ip6"}, {"va", "Virtual address", "u64", H}, {"r_key", "R_Key", "u32", H}, {"rest", "Unknown", "bytes"},
})

local malformed, experts = {}, {}
for proto, l in pairs(list) do
	proto.fields = l
	malformed[proto] = ProtoExpert.new(proto.name:lower() .. ".malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
	experts[proto] = ProtoExpert.new(proto.name:lower() .. ".cut", "Packet size limited during capture", expert.group.UNDECODED, expert.severity.NOTE)
	proto.experts = {malformed[proto], experts[proto]}
end

-- A cursor reads a message from front to back. What it throws at a message's end is caught by
-- dissect alone; every other error is one of this file, and Wireshark shows it.
local STOP = {}
local Cursor = {}
Cursor.__index = Cursor
local function cursor(proto, prefix, tvb, tree, finish)
	return setmetatable({proto = proto, prefix = prefix, tvb = tvb, tree = tree, at = 0, finish = finish, v6 = false}, Cursor)
end
function Cursor:fail(text)
	self.tree:add_proto_expert_info(malformed[self.proto], "Malformed message: " .. text)
	error(STOP)
end
function Cursor:room() return self.finish - self.at end
-- take adds n bytes as a field and returns their range.
function Cursor:take(name, n)
	local f = F[self.prefix .. name]
	if n > self:room() then self:fail("it ends within " .. name) end
	if self.at + n > self.tvb:len() then
		self.tree:add_proto_expert_info(experts[self.proto], "Packet size limited during capture: " .. name .. " and what follows was not captured")
		error(STOP)
	end
	local range = self.tvb(self.at, n)
	self.item = self.tree:add(f, range)
	self.at = self.at + n
	return range
end
function Cursor:u8(name) return self:take(name, 1):uint() end
function Cursor:u16(name) return self:take(name, 2):uint() end
function Cursor:u24(name) return self:take(name, 3):uint() end
function Cursor:u32(name) return self:take(name, 4):uint() end
function Cursor:u64(name) return self:take(name, 8):uint64() end
function Cursor:bits(name, ...)
	local range = self:take(name, 1)
	for _, bit in ipairs({...}) do self.item:add(F[self.prefix .. name .. "." .. bit], range) end
	return range:uint()
end
function Cursor:ip(name)
	if self.v6 then return tostring(self:take(name .. "6", 16):ipv6()) end
	return tostring(self:take(name, 4):ipv4())
end
-- within runs f with a subtree for what it takes.
function Cursor:within(text, f)
	local tree, at = self.tree, self.at
	self.tree = tree:add(self.proto, self.tvb(math.min(at, self.tvb:len()), 0), text)
	local more = f()
	self.tree:set_len(math.max(0, math.min(self.at, self.tvb:len()) - at))
	if more then self.tree:append_text(more) end
	self.tree = tree
end
function Cursor:window() self:u64("window.base"); self:u64("window.length"); self:u32("window.r_key") end
function Cursor:key()
	local ip = self:ip("member")
	return ip, self:u24("qpn")
end

local function bit(bytes, i) return math.floor(bytes:get_index(math.floor(i / 8)) / 2 ^ (7 - i % 8)) % 2 == 1 end
local function has(flags, mask) return math.floor(flags / mask) % 2 == 1 end

-- address returns the address that bytes are.
local function address(bytes)
	local parts = {}
	if bytes:len() == 4 then
		for i = 0, 3 do parts[i + 1] = bytes:get_index(i) end
		return Address.ip(table.concat(parts, "."))
	end
	for i = 0, 7 do parts[i + 1] = string.format("%x", bytes:get_index(2 * i) * 256 + bytes:get_index(2 * i + 1)) end
	return Address.ipv6(table.concat(parts, ":"))
end

-- section reads a record section (PROTOCOL.md §5) and returns the number of its records.
local function section(c)
	local n
	c:within("Record section", function()
		local flags = c:bits("section.flags", "sq", "rq", "windows", "receive_only")
		local a, p = c.v6 and 16 or 4, c:u8("section.prefix_length")
		if p > a then c:fail("more common bytes than an address has") end
		n = c:u16("section.count")
		local prefix, windows, receivers = ByteArray.new()
		if p > 0 then prefix = c:take("section.prefix", p):bytes() end
		if not has(flags, 1) then c:u24("sq_psn") end
		if not has(flags, 2) then c:u24("rq_psn") end
		local map = math.floor((n + 7) / 8)
		if has(flags, 4) and n > 0 then windows = c:take("section.windows", map):bytes() end
		if has(flags, 8) and n > 0 then receivers = c:take("section.receive_only", map):bytes() end
		for i = 0, n - 1 do
			c:within("Record " .. i, function()
				if p == 0 then c:ip("member")
				else
					if p < a then c:take("member.suffix", a - p) end
					c.tree:add(F[c.v6 and "gleam.member6" or "gleam.member"], c.tvb(c.at, 0), address(prefix .. c.tvb(c.at - a + p, a - p):bytes())):set_generated()
				end
				c:u24("qpn")
				if has(flags, 1) then c:u24("sq_psn") end
				if has(flags, 2) then c:u24("rq_psn") end
				if windows and bit(windows, i) then c:window() end
				if receivers and bit(receivers, i) then c.tree:add(F["gleam.receive_only"], "yes"):set_generated() end
			end)
		end
	end)
	return n
end

-- register reads the body of Register and Notify, and returns a text and the number of its records.
local function register(c)
	local flags = c:bits("content", "window", "update", "policy", "target_key", "no_repair", "exclusive")
	c:u8("policy"); c:u24("virtual_qpn"); c:u16("path_mtu")
	c:u16("members")
	local text = ""
	c:u64("dead_after"); c:u64("lease")
	if has(flags, 1) then c:window() end
	if has(flags, 2) then text = ", update of " .. tostring(c:u64("base_epoch")) end
	if has(flags, 4) then c:u16("quorum"); c:u24("lag_psns"); c:u64("lag_time"); c:u8("timeout"); c:u8("retries") end
	if has(flags, 8) then c:u32("target_key") end
	local n = section(c)
	return " members " .. n .. text, n
end

local function link(c)
	c:u64("link.switch"); c:u64("link.neighbour")
	local n = c:u8("link.port_length")
	if n > 0 then c:take("link.port", n) end
end

local function gone(c)
	local ip, qpn = c:key()
	local why = c:u8("why")
	c:u8("code"); c:u24("psn")
	if why == 8 then link(c) end
	local text = " " .. (causes[why] or "for reason " .. why)
	if ip ~= "0.0.0.0" and ip ~= "::" then text = text .. string.format(" %s qpn 0x%x", ip, qpn) end
	return text
end

local function request(c) return " of " .. (types[c:u8("request")] or "?") end
local bodies = {
	[1] = register, [8] = function(c) register(c) end, [10] = gone,
	[2] = function(c) return string.format(" %s qpn 0x%x", c:key()) end,
	[4] = function(c) c:u64("lease"); return " remind " .. section(c) end,
	[5] = function(c) local of = request(c); c:u16("members"); c:u64("lease"); return of end,
	[6] = function(c)
		local of, reason = request(c), c:u8("reason")
		c:key(); c:u64("value")
		return of .. ": " .. (reasons[reason] or "reason " .. reason)
	end,
	[7] = function(c) return request(c) .. ", known " .. tostring(c:u64("known")) end,
	[9] = function(c)
		local text = string.format(" %s qpn 0x%x", c:key())
		local status = c:u8("status")
		c:u24("qpn"); c:u24("sq_psn"); c:u24("rq_psn")
		return text .. " " .. (statuses[status] or "status " .. status)
	end,
	[12] = function(c) local ip = c:ip("member"); c:take("nonce", 16); return " " .. ip end,
	[14] = function(c)
		local kind = c:u8("notice")
		local text = string.format(" %s qpn 0x%x", c:key())
		c:u8("code"); c:u24("psn"); c:u64("serial")
		return " " .. (notices[kind] or "kind " .. kind) .. text
	end,
}
bodies[13] = bodies[12]

local relayBodies = {
	[1] = function(c, own)
		own:ip("master"); own:u16("master_port"); own:u32("transaction"); own:u64("left"); own:u64("origin"); own:u64("generation"); own:u32("known")
		c.at = own.at
		local text, n = register(c)
		own.at = c.at
		if n > 0 then own:take("behind", math.floor((n + 7) / 8)) end
		local each = own:u8("each")
		for _ = 1, each == 0 and 1 or n do own:u32("member_number") end
		return text
	end,
	[2] = function(_, own) own:u8("levels"); own:u8("diameter") end,
	[3] = function(c, own)
		local text = ""
		for _ = 1, own:u8("reasons") do
			c.at = own.at
			local reason = c:u8("reason")
			c:key(); c:u64("value")
			own.at = c.at
			text = text .. ": " .. (reasons[reason] or "reason " .. reason)
		end
		return text
	end,
	[4] = function(_, own) own:u8("levels") end,
	[5] = function(_, own) own:u8("lacking") end,
	[6] = function(c, own)
		c.at = own.at
		local why = c:u8("why")
		if why == 8 then link(c) end
		own.at = c.at
		return ": " .. (causes[why] or "the attempt has failed")
	end,
	[8] = function(c, own)
		own:u32("number"); own:u32("transaction"); own:u64("lease")
		if own:u8("notify") == 0 then c.at = own.at; section(c); own.at = c.at end
	end,
	[9] = function(_, own) own:u32("number") end,
	[10] = function(c, own) own:u32("number"); c.at = own.at; local text = gone(c); own.at = c.at; return text end,
	[11] = function(_, own) own:u32("number") end,
	[12] = function(c, own) c.at = own.at; link(c); own.at = c.at end,
}

-- dissect runs f with a cursor over a message, and returns the number of bytes that it has.
local function dissect(proto, prefix, tvb, pinfo, root, name, f)
	local finish = tvb:reported_len()
	local tree = root:add(proto, tvb())
	local c = cursor(proto, prefix, tvb, tree, finish)
	pinfo.cols.protocol = name
	local ok, err = pcall(f, c)
	if not ok and err ~= STOP then error(err, 0) end
	return tvb:len()
end

-- finish reads the end of a message: mac bytes of HMAC, and proof bytes before them.
local function finish(c, mac, proof)
	c.finish = c.finish + proof + mac
	if c:room() > proof + mac then
		c:take("rest", c:room() - proof - mac)
		c:fail("it is longer than its fields")
	end
	if proof > 0 then c:take("proof", proof) end
	if mac > 0 then c:take("mac", mac) end
end

-- message reads what envelopes and relays have in common.
local function message(c, size, mac)
	if size ~= c.finish then c:fail("its length is " .. size .. ", and the datagram has " .. c.finish) end
	if c:room() < mac then c:fail("it is too short for its HMAC") end
	c.finish = c.finish - mac
end

local MAC = 32
local function startsWith(tvb, magic) return tvb:len() >= #magic and tvb(0, #magic):string() == magic end

function envelope.dissector(tvb, pinfo, root)
	return dissect(envelope, "gleam.", tvb, pinfo, root, "GLEAM", function(c)
		c:take("magic", 4)
		local version, kind = c:u8("version"), c:u8("type")
		local name = types[kind] or "type " .. kind
		pinfo.cols.info = name
		if version ~= 1 then c:fail("version " .. version .. " is not known") end
		local key = c:u16("key")
		local flags = c:bits("flags", "ipv6", "relayed")
		c.v6 = has(flags, 1)
		c:u8("hops")
		message(c, c:u16("length"), key ~= 0 and MAC or 0)
		local epoch = tostring(c:u64("epoch"))
		c:u64("instance"); c:u32("transaction")
		local seq, total = c:u16("seq"), c:u16("total")
		local group = c:ip("group")
		c:ip("reply_to"); c:u16("reply_port")
		local info = name .. " epoch " .. epoch
		if total > 1 then info = info .. string.format(" %d/%d", seq + 1, total) end
		pinfo.cols.info = info
		c.tree:append_text(string.format(", %s, group %s, epoch %s", name, group, epoch))
		local body = bodies[kind]
		if body then pinfo.cols.info = info .. (body(c) or "")
		elseif not types[kind] then c:take("rest", c:room()); c:fail("type " .. kind .. " is not known") end
		finish(c, key ~= 0 and MAC or 0, 0)
	end)
end

function relay.dissector(tvb, pinfo, root)
	return dissect(relay, "gleam.relay.", tvb, pinfo, root, "GLEAM-RELAY", function(own)
		own:take("magic", 4)
		local version, kind = own:u8("version"), own:u8("kind")
		local name = kinds[kind] or "kind " .. kind
		pinfo.cols.info = name
		if version ~= 4 then own:fail("version " .. version .. " is not known") end
		own:u16("key")
		local flags = own:bits("flags", "ipv6", "proof")
		own.v6 = has(flags, 1)
		local proof = has(flags, 2) and MAC or 0
		own:u8("hops")
		message(own, own:u16("length"), proof + MAC)
		own:u64("sender"); own:u64("session"); own:u64("sequence"); own:u64("root"); own:u64("attempt")
		local epoch = tostring(own:u64("epoch"))
		local seq, total = own:u16("seq"), own:u16("total")
		own:u16("group_key")
		local group = own:ip("group")
		local info = name .. " epoch " .. epoch
		if total > 1 then info = info .. string.format(" %d/%d", seq + 1, total) end
		pinfo.cols.info = info
		own.tree:append_text(string.format(", %s, group %s, epoch %s", name, group, epoch))
		local c = cursor(envelope, "gleam.", tvb, own.tree, own.finish) -- for what envelopes have, too
		c.v6 = own.v6
		if relayBodies[kind] then pinfo.cols.info = info .. (relayBodies[kind](c, own) or "")
		elseif not kinds[kind] then own:take("rest", own:room()); own:fail("kind " .. kind .. " is not known") end
		finish(own, MAC, proof)
	end)
end

local TOKEN = 124 -- bytes of each token message
local function isToken(tvb) return tvb:reported_len() == TOKEN and tvb:len() >= 4 and tvb(0, 1):uint() == 6 and tvb(2, 2):uint() == 0 end

function token.dissector(tvb, pinfo, root)
	return dissect(token, "gleam.token.", tvb, pinfo, root, "GLEAM-TOKEN", function(c)
		c:u8("version")
		local flags = c:bits("flags", "poll", "joined", "suspended", "requests", "doubtful", "ends", "over")
		c:u16("reserved")
		local group = tostring(c:take("group", 16):ipv6()):gsub("^::ffff:", "")
		c:u64("session")
		local seq, ack = tostring(c:u64("seq")), tostring(c:u64("ack"))
		local term = tostring(c:u64("term"))
		local info = string.format("Token of group %s, term %s, seq %s, ack %s", group, term, seq, ack)
		for i, name in ipairs({"poll", "joined", "suspended", "requests", "doubtful"}) do
			if has(flags, 2 ^ (i - 1)) then info = info .. ", " .. name end
		end
		pinfo.cols.info = info
		c:u64("outdated"); c:u64("crossings"); c:u32("member"); c:u32("source"); c:u32("psn"); c:u32("needed"); c:u32("layout"); c:u32("next")
		c:take("mac", MAC)
	end)
end

function hello.dissector(tvb, pinfo, root)
	if not startsWith(tvb, "GLHI") then return 0 end
	return dissect(hello, "gleam.hello.", tvb, pinfo, root, "GLEAM-HELLO", function(c)
		c:take("magic", 4)
		local version = c:u8("version")
		pinfo.cols.info = "Hello"
		if version ~= 1 then c:fail("version " .. version .. " is not known") end
		c:u8("max_version"); c:u16("key"); c:u16("interval")
		local size = c:u16("length")
		if size > c.finish or size < 76 + MAC then c:fail("its length is " .. size) end
		local padding = c.finish - size
		c.finish = size - MAC
		c:u32("capabilities")
		local id = c:take("switch", 8):bytes():tohex(true)
		c:u64("incarnation")
		local seq = tostring(c:u64("seq"))
		pinfo.cols.info = string.format("Hello of switch %s, seq %s", id, seq)
		c:u32("port"); c:take("address", 6)
		local n = c:u8("neighbours")
		c:u8("reserved"); c:take("ipv4", 4); c:take("ipv6", 16); c:u32("mtu")
		for i = 1, n do
			c:within("Neighbour " .. i, function() c:u64("neighbour.switch"); c:u64("neighbour.incarnation"); c:u64("neighbour.challenge"); c:u64("neighbour.echo") end)
		end
		while c:room() > 0 do
			c:within("Extension", function()
				local kind, len = c:u8("extension.type"), c:u8("extension.length")
				if kind == 1 and len == 18 then c:take("api.address", 16); c:u16("api.port")
				elseif len > 0 then c:take("extension.value", len) end
			end)
		end
		c.finish = c.finish + MAC
		c:take("mac", MAC)
		c.finish = c.finish + padding
		if padding > 0 then c:take("padding", padding) end
	end)
end

function targets.dissector(tvb, pinfo, root)
	return dissect(targets, "gleam.targets.", tvb, pinfo, root, "GLEAM-TARGETS", function(c)
		c:take("magic", 2)
		local version, family = c:u8("version"), c:u8("family")
		pinfo.cols.info = "Target message"
		if version ~= 1 then c:fail("version " .. version .. " is not known") end
		if family ~= 4 and family ~= 6 then c:fail("IP family " .. family .. " is not known") end
		c.v6 = family == 6
		local n = 0
		while c:room() > 0 do
			if c:room() < (c.v6 and 28 or 16) then c:take("rest", c:room()); c:fail("it ends within a record") end
			c:within("Record " .. n, function() local ip = c:ip("member"); c:u64("va"); c:u32("r_key"); return ", " .. ip end)
			n = n + 1
		end
		pinfo.cols.info = "Target message, records " .. n
	end)
end

-- port dissects a datagram of UDP port 4797, and returns 0 for what is none of Gleam's.
local function port(tvb, pinfo, root)
	if startsWith(tvb, "GLEM") then return envelope.dissector(tvb, pinfo, root) end
	if startsWith(tvb, "GLRL") then return relay.dissector(tvb, pinfo, root) end
	if isToken(tvb) then return token.dissector(tvb, pinfo, root) end
	return 0
end
local any = Proto("gleam.port", "Gleam, UDP port 4797")
any.dissector = port
DissectorTable.get("udp.port"):add(PORT, any)
DissectorTable.get("ethertype"):add(ETHERTYPE, hello)
envelope:register_heuristic("udp", function(tvb, pinfo, root) return startsWith(tvb, "GLEM") and tvb:len() >= 12 and envelope.dissector(tvb, pinfo, root) > 0 end)
relay:register_heuristic("udp", function(tvb, pinfo, root) return startsWith(tvb, "GLRL") and tvb:len() >= 12 and relay.dissector(tvb, pinfo, root) > 0 end)
-- A target message is the payload of a WRITE; its first bytes say so, and its length fits.
targets:register_heuristic("infiniband.payload", function(tvb, pinfo, root)
	if tvb:len() < 4 or tvb(0, 2):string() ~= "GT" or tvb(2, 1):uint() ~= 1 then return false end
	local family, n = tvb(3, 1):uint(), tvb:reported_len() - 4
	local size = family == 4 and 16 or family == 6 and 28 or 0
	if size == 0 or n == 0 or n % size ~= 0 then return false end
	return targets.dissector(tvb, pinfo, root) > 0
end)

-- Packets of RoCEv2 that were cut in their payload, as those of gleam trace without --snap. Wireshark calls their length
-- invalid in the column Info, although it is right. They get the text there that whole ones have.
local cut = Proto("gleam.cut", "RoCEv2, cut")
local opcodeOf, pairOf = Field.new("infiniband.bth.opcode"), Field.new("infiniband.bth.destqp")
function cut.dissector(tvb, pinfo)
	if tvb:len() == tvb:reported_len() then return end
	local opcode, qp = opcodeOf(), pairOf()
	if not opcode or not qp or not tostring(pinfo.cols.info):find("Invalid Packet Length", 1, true) then return end
	local name = opcode.display:gsub("^.*%((%u+)%) %- ", "%1 "):gsub(" %(%d+%)$", "")
	pinfo.cols.info:clear_fence()
	pinfo.cols.info = string.format("%s QP=0x%06x [payload not captured]", name, qp.value)
end
register_postdissector(cut)

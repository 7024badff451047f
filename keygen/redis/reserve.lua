-- Reserves n positions of a shard's time line and returns the first of them.
--
-- A position is the milliseconds since 1970 times 1024, plus a sequence. It is about 2^51 today, and
-- Lua's numbers are exact up to 2^53. Positions are handed out in ascending order, so no two calls
-- get the same one.
--
-- KEYS[1]  hash {last, lag, run, epoch}
--          last: the last position handed out
--          lag: how far, in ms, the server's clock is behind the time line after it stepped back
--          run: the server process on which the state was last checked
--          epoch: the epoch of the keys, which must not change
-- ARGV     n: the number of positions; 0 checks the state and reserves none
--          floor: the caller's last position; 0 for none
--          reach: the minimum current time of the time line, by the caller's monotonic clock; 0 if
--          unknown
--          epoch
--          the time of the caller's clock
--          run; '' if it is the same as before
--
-- Returns  {'ok', first position, now, the time line's now, whether state was lost}
--          {'wait', milliseconds, now, the time line's now, …}  no positions are left at the moment
--          {'clock', now}                                       the clock is off by years
--          {'foreign', field, value}                            the state isn't shardkey's

local SLACK = 64     -- how far positions may be ahead of the clock, in ms
local SPILL = 65     -- how far one call may exceed that: 65,536 keys, and 1 for rounding
local MARGIN = SLACK + SPILL
local YEAR = 366 * 24 * 3600 * 1000

local n, floor, reach = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local epoch, caller, run = ARGV[4], tonumber(ARGV[5]), ARGV[6]

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if math.abs(now - caller) > YEAR then
	return {'clock', now}
end

local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'hash' and kind ~= 'none' then
	return {'foreign', 'type', kind}
end
local state = redis.call('HMGET', KEYS[1], 'last', 'lag', 'run', 'epoch')
local last, lag = tonumber(state[1] or 'none'), tonumber(state[2] or '0')
if state[1] and not (last and last >= 0 and last < 2^52 and last == math.floor(last)) then
	return {'foreign', 'last', state[1]}
end
if not (lag and lag >= 0 and lag < 2^42 and lag == math.floor(lag)) then
	return {'foreign', 'lag', state[2]}
end
if state[4] and state[4] ~= epoch then
	return {'foreign', 'epoch', state[4]}
end
if not last and kind == 'hash' then
	return {'foreign', 'last', 'absent'}
end

-- Positions may have been handed out that the state doesn't show: the caller knows a later position
-- (lost), the state is new, or this is another server process, which may lack the last writes.
local lost = floor > (last or 0)
local fresh = lost or not last or (run ~= '' and run ~= (state[3] or ''))

-- The time line follows the clock, but never goes back. After the clock stepped back, the time line
-- is behind its own last position by at most MARGIN. The lag shrinks as the clock catches up.
local known = math.max(last or 0, floor)
local ahead = math.floor(known / 1024) - now
local behind = math.max(0, fresh and lag or math.min(lag, ahead), ahead - MARGIN)
if fresh then -- the clock alone doesn't show how far the time line was
	behind = math.max(behind, reach - now)
end
local time = now + behind
if fresh then -- start after all positions that can have been handed out before
	known = math.max(known, (time + MARGIN) * 1024 - 1)
end

-- The keys of a call are in one millisecond if they fit into one.
local first = math.max(known + 1, time * 1024)
local used = first % 1024
if n <= 1024 and used + n > 1024 then
	first = first - used + 1024
end
local wait = math.floor(first / 1024) - time - SLACK

local grant = n > 0 and wait <= 0
if grant then
	known = first + n - 1
end
if grant or fresh or behind > lag then
	local set = {'last', string.format('%.0f', known), 'lag', string.format('%.0f', behind), 'epoch', epoch}
	if run ~= '' then
		set[7], set[8] = 'run', run
	end
	redis.call('HSET', KEYS[1], unpack(set))
end
lost = lost and 1 or 0
if n > 0 and not grant then
	return {'wait', wait, now, time, lost}
end
return {'ok', first, now, time, lost}

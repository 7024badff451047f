-- Reserves n positions of a shard's time line and returns the first of them.
--
-- A position is milliseconds since 1970 times 1024 plus a sequence: 2^51 today,
-- well inside the 2^53 up to which Lua's numbers are exact. Positions are only
-- ever handed out upwards, so no two calls share one.
--
-- KEYS[1]  hash {last, lag, run, epoch}
--          last: the last position handed out
--          lag: how far (ms) the server's clock is behind the time line, after
--          it went back
--          run: the server process that the state was last checked on
--          epoch: the epoch of the keys, which must not change
-- ARGV     n (0: check the state, hand nothing out), floor: the last position
--          the caller has had (0: none), reach: the time that the time line must
--          have reached by the caller's monotonic clock (0: not known), epoch, the
--          caller's own time, run ('': the same as before)
--
-- Returns  {'ok', first position, now, time line's now, whether state was lost}
--          {'wait', milliseconds, now, time line's now, …}  used up for now
--          {'clock', now}                                   the clock is years off
--          {'foreign', field, value}                        state that is not ours

local SLACK = 64     -- how far (ms) positions may run ahead of the clock
local SPILL = 65     -- and one call beyond that: 65,536 keys, and one for rounding
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

-- Where handed-out positions may be unknown: lost state (the caller knows of a later
-- position), a new state, another server process that may have come up without
-- its last writes.
local lost = floor > (last or 0)
local fresh = lost or not last or (run ~= '' and run ~= (state[3] or ''))

-- The time line goes with the clock, but never back. After a step back of the
-- clock it lags behind its own last position by no more than what calls may run
-- ahead, and the lag goes as the clock comes up again.
local known = math.max(last or 0, floor)
local ahead = math.floor(known / 1024) - now
local behind = math.max(0, fresh and lag or math.min(lag, ahead), ahead - MARGIN)
if fresh then -- the clock alone does not tell how far the time line was
	behind = math.max(behind, reach - now)
end
local time = now + behind
if fresh then -- start behind all that can have been given out until then
	known = math.max(known, (time + MARGIN) * 1024 - 1)
end

-- A call's keys stay in one millisecond when they fit into one.
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

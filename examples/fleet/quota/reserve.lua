-- Reserves the next free slot of a quota by the generic cell rate algorithm, on
-- Redis' own clock. All times are whole microseconds.
--
-- KEYS[1] is the quota: "next", when the next slot is free, and "generation",
-- which is another whenever slots may be missing from next.
local interval = tonumber(ARGV[1])  -- between two slots
local credit   = tonumber(ARGV[2])  -- how much earlier than that a burst may be
local longest  = tonumber(ARGV[3])  -- the longest acceptable wait, or -1
local grace    = tonumber(ARGV[4])
local doubt    = ARGV[5] == 'doubt' -- whether Redis may have restarted

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local state = redis.call('HMGET', KEYS[1], 'next', 'generation')
local next, generation = tonumber(state[1]), state[2]

-- Lua would write a number of this size in fewer digits than it has.
local function write(t) return string.format('%.0f', t) end

if doubt or not next then
  local process = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  if not next or string.sub(generation, 1, #process) ~= process then
    -- Slots may have been given that are not in this state, to be used within
    -- grace: they have that time to themselves, and no burst follows it.
    next, generation = now + grace + interval + credit, process .. write(now)
    redis.call('HSET', KEYS[1], 'next', write(next), 'generation', generation)
  end
end

next = math.max(next, now)
local wait = math.max(0, next - credit - now)
if longest >= 0 and wait > longest then
  return {0, wait, generation}
end
redis.call('HSET', KEYS[1], 'next', write(next + interval))
return {1, wait, generation}

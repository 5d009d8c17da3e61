/**
 * The audit of a Redis store: Lua around its scripts that writes down every change of a job's state in the step that
 * makes it, and replaces the clock. The shipped store knows nothing of it.
 */

import type { JobState } from '../../core/job/job.js'
import type { RedisClient, RedisReply, RedisScriptCall } from '../../stores/redis/client/redis-client.js'
import type { RedisScript } from '../../stores/redis/client/redis-script.js'
import { redisScript } from '../../stores/redis/client/redis-script.js'
import { type AuditEntry, auditKind } from './store-audit.js'

/**
 * Runs before a script. Its last KEY is the list of the audit; its last two ARGV are the answer of INFO, and the
 * instant in ms that TIME answers with, or ''. One entry is an instant, the key of the jobs, id, state before, state
 * after, fence and worker, with NUL between them.
 */
const before = String.raw`
local redis = (function()
local AUDIT, INSTANT, TOLD = table.remove(KEYS), tonumber(table.remove(ARGV)), table.remove(ARGV)
local server = redis
local seen = {}
local names = { l = 'ready', r = 'ready', x = 'ready', s = 'scheduled', w = 'waiting', a = 'waiting', c = 'completed', d = 'dead' }
local function base(key) return string.match(key, '^(.*):[%a-]+$') end
local function state_of(tag, id)
  local known = seen[tag .. id]
  if known then return known end
  local claim = server.call('HGET', tag .. ':claims', id)
  known = {}
  if claim then
    known = { state = 'running', fence = struct.unpack('>I7', claim), worker = string.sub(claim, 16, 15 + string.byte(claim, 15)) }
  else
    local past, record = server.call('HGET', tag .. ':history', id), server.call('HGET', tag .. ':jobs', id)
    if record then known = { state = names[string.lower(string.sub(past or record, 1, 1))] } end
  end
  seen[tag .. id] = known
  return known
end
local function became(tag, id, state, fence, worker)
  local was = state_of(tag, id)
  local claim = state == 'running' and { fence = fence, worker = worker } or was
  if was.state ~= state or was.fence ~= fence then
    local at = INSTANT or 0
    if not INSTANT then
      local time = server.call('TIME')
      at = time[1] * 1000 + math.floor(time[2] / 1000)
    end
    server.call('RPUSH', AUDIT, table.concat({ string.format('%.0f', at), tag, id, was.state or '', state or '',
      string.format('%.0f', claim.fence or 0), claim.worker or '' }, '\0'))
  end
  seen[tag .. id] = { state = state, fence = fence, worker = worker }
end
local function call(command, ...)
  if command == 'TIME' and INSTANT then
    return { string.format('%.0f', math.floor(INSTANT / 1000)), string.format('%.0f', INSTANT % 1000 * 1000) }
  end
  if command == 'INFO' and TOLD ~= '' then return TOLD end
  if command == 'HSET' or command == 'HDEL' then
    local key = ...
    local tag, name = base(key), string.match(key, ':([%a-]+)$')
    local args = { select(2, ...) }
    if name == 'claims' then
      for i = 1, #args, command == 'HSET' and 2 or 1 do
        if command == 'HSET' then
          local fence, worker = struct.unpack('>I7', args[i + 1]), string.sub(args[i + 1], 16, 15 + string.byte(args[i + 1], 15))
          local was = state_of(tag, args[i])
          if was.state ~= 'running' or was.fence ~= fence then became(tag, args[i], 'running', fence, worker) end
        else
          -- Ended; what it becomes is written next.
          local was = state_of(tag, args[i])
          seen[tag .. args[i]] = { state = was.state, fence = was.fence, worker = was.worker, ended = true }
        end
      end
    elseif name == 'history' and command == 'HSET' then
      for i = 1, #args, 2 do
        local was = state_of(tag, args[i])
        if was.state ~= 'running' or was.ended then became(tag, args[i], names[string.lower(string.sub(args[i + 1], 1, 1))]) end
      end
    elseif name == 'jobs' then
      for i = 1, #args, command == 'HSET' and 2 or 1 do
        became(tag, args[i], command == 'HSET' and names[string.lower(string.sub(args[i + 1], 1, 1))] or nil)
      end
    end
  end
  return server.call(command, ...)
end
local function pcall(command, ...)
  if command == 'INFO' then return call(command) end
  return server.pcall(command, ...)
end
return setmetatable({ call = call, pcall = pcall }, { __index = server })
end)()
`

const audited = new Map<string, RedisScript>()

/** The script with the audit around it. */
function auditedScript({ name, text }: RedisScript): RedisScript {
  const known = audited.get(text)
  if (known !== undefined) return known
  const [, flags, body] = /^#!lua(.*)\n([\s\S]*)$/.exec(text)!
  const script = redisScript(name, before + body, { whenFull: flags !== '' })
  audited.set(text, script)
  return script
}

/** The list to which a script's audit is written: on a cluster one for each tag. */
function auditKey(namespace: string, keys: readonly string[], isCluster: boolean): string {
  return isCluster ? `${/^\{.*?\}/.exec(keys[0]!)![0]}:audit` : `{${namespace}}:audit`
}

/**
 * The same port, with every script audited, with `now` as its clock and `info` as the answer of INFO; without these the
 * server's own.
 */
export function auditedClient(
  client: RedisClient,
  namespace: string,
  now?: () => number,
  info?: () => string,
): RedisClient {
  const auditedCall = ({ script, keys, args }: RedisScriptCall): RedisScriptCall => ({
    script: auditedScript(script),
    keys: [...keys, auditKey(namespace, keys, client.isCluster)],
    args: [...args, info?.() ?? '', now === undefined ? '' : String(now())],
  })
  return {
    get isCluster() {
      return client.isCluster
    },
    run(script, keys, args, replicas) {
      const call = auditedCall({ script, keys, args })
      return client.run(call.script, call.keys, call.args, replicas)
    },
    async command(name, args) {
      if (name !== 'TIME' || now === undefined) return client.command(name, args)
      return [String(Math.floor(now() / 1_000)), String((now() % 1_000) * 1_000)]
    },
    pop: (keys, forMs, signal) => client.pop(keys, forMs, signal),
    popAndRun: (keys, forMs, signal, call) => client.popAndRun(keys, forMs, signal, auditedCall(call)),
    listen: (channel, heard) => client.listen(channel, heard),
    reach: () => client.reach(),
    close: () => client.close(),
  }
}

/** The entries of one list of the audit, in its order. */
export function auditEntries(list: readonly RedisReply[]): AuditEntry[] {
  return list.flatMap((line): AuditEntry[] => {
    const [at, tag, id, before, after, fence, worker] = (line as Buffer).toString().split('\0')
    const [from, to] = [before === '' ? null : (before as JobState), after === '' ? null : (after as JobState)]
    const kind = auditKind(from, to)
    if (kind === undefined) return []
    const [, place, placed, queue = place, shard = placed] =
      /^\{[^:]*:([^:}]+)(?::(?:\d+\.)?(\d+))?\}(?::([^:]+)(?::\d+\.(\d+))?)?$/.exec(tag!)!
    return [
      {
        at: Number(at),
        queue: queue!,
        ...(shard === undefined ? {} : { shard: Number(shard) }),
        id: id!,
        kind,
        from,
        to,
        fence: Number(fence),
        worker: worker === '' ? null : worker!,
      },
    ]
  })
}

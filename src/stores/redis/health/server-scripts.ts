/** The server scripts: what the server that holds a key says of itself, and what it lets this user do. They write nothing. */

import { redisScript } from '../client/redis-script.js'

/**
 * KEYS: any on the server that is meant. No ARGV.
 * Returns the text of INFO.
 */
export const infoScript = redisScript('server-info', `return redis.call('INFO')`, { readOnly: true })

/**
 * KEYS: any on the server that is meant. ARGV: of each command the number of its words, and those.
 * Returns for each 1 where this user may run it, 0 where not, -1 where the server has no such command. Runs none of them.
 */
export const rightsScript = redisScript(
  'server-rights',
  `
local answers, from = {}, 1
while from <= #ARGV do
  local count = tonumber(ARGV[from])
  local is_known, may = pcall(redis.acl_check_cmd, unpack(ARGV, from + 1, from + count))
  answers[#answers + 1] = not is_known and -1 or (may and 1 or 0)
  from = from + 1 + count
end
return answers
`,
  { readOnly: true },
)

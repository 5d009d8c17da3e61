/**
 * The server scripts: what the server of a key reports about itself, and what this user may do there. They write
 * nothing.
 */

import { redisScript } from '../client/redis-script.js'

/**
 * KEYS: any key on the server in question. No ARGV.
 * Returns the text of INFO.
 */
export const infoScript = redisScript('server-info', `return redis.call('INFO')`, { readOnly: true })

/**
 * KEYS: any key on the server in question. ARGV: for each command the number of its words, then the words.
 * Returns for each command 1 if this user may run it, 0 if not, -1 if the server has no such command. Runs none.
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

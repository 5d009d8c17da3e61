/** A password in the URL of a store: no command prints it, whatever is wrong with the URL or the server. */

import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CommandProcess } from './command-process.js'
import { project } from './project.js'

const marker = 'sesame'
const commands: readonly (readonly string[])[] = [
  ['enqueue', 'echo', '1', '--id', 'known'],
  ['stats'],
  ['queues', 'list'],
  ['jobs', 'list', 'default'],
  ['jobs', 'show', 'known'],
  ['workers'],
  ['doctor'],
  ['fsck'],
  ['exec', 'slow', '--', 'true'],
  ['work', '--health-port', '0'],
]
/** Those that see what is wrong with a server each in a way of its own. */
const looking = ['enqueue', 'doctor', 'work']
/** They run until they are told to stop. */
const lasting = ['exec', 'work']

let server: RedisServer
const urls: [string, string][] = []
beforeAll(async () => {
  server = await startRedis()
  await server.ask('ACL', 'SETUSER', 'mill', 'on', `>${marker}`, 'allkeys', 'allchannels', '+@all')
  const at = `127.0.0.1:${server.port}`
  urls.push(
    ['right', `redis://mill:${marker}@${at}`],
    ['of a user with another password', `redis://mill:${marker}-x@${at}`],
    ['of an invalid cluster', `redis+cluster://mill:${marker}@${at}`],
    ['of invalid Sentinels', `redis+sentinel://mill:${marker}@${at}/main?sentinelPassword=${marker}`],
    ['of nobody', `redis://mill:${marker}@127.0.0.1:1`],
    ['of a database that is not there', `redis://mill:${marker}@${at}/99999`],
    ['malformed', `redis//:${marker}`],
    ['without an @', `redis://mill:${marker}`],
    ['of an unknown kind', `redsi://mill:${marker}@${at}`],
  )
})
afterAll(() => server.stop())

it.each(commands.map((args) => [args.join(' '), args] as const))(
  'no secret of a store URL is printed by %s',
  { timeout: 120_000 },
  async (_, args) => {
    const cwd = project()
    const said = await Promise.all(
      urls.map(async ([what, url]) => {
        if (what !== 'right' && !looking.includes(args[0]!)) return ''
        for (const more of [[], ['--json']].slice(0, what === 'right' ? 2 : 1)) {
          const at = args.indexOf('--')
          const given = at < 0 ? [...args, ...more] : [...args.slice(0, at), ...more, ...args.slice(at)]
          const command = new CommandProcess(given, { cwd, env: { MILLRACE_STORE: url } })
          if (lasting.includes(args[0]!)) {
            await Promise.any([command.stdoutMatches(/\S/), command.stderrMatches(/\S/)]).catch(() => {})
            command.kill('SIGUSR2')
            command.kill('SIGTERM')
          }
          const { stdout, stderr } = await command.end()
          if ((stdout + stderr).includes(marker)) return `${what}: ${stdout}${stderr}`
          if ((stdout + stderr).trim() === '') return `${what}: nothing is said`
        }
        return ''
      }),
    )
    expect(said.filter((one) => one !== '')).toEqual([])
  },
)

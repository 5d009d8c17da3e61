/** The command `events`: prints the events of a queue's jobs in all processes, one line each, until interrupted. */

import type { Command } from 'commander'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { liveLine } from '../output/live-line.js'

export function addEvents(program: Command): void {
  const command = millCommand(program, 'events <queue>', 'Follow what becomes of the jobs of a queue').addHelpText(
    'after',
    `
  Starts, progress, ends and burials as they happen, of all processes, until interrupted. Workers that are at work notice within
  about 3 s that somebody watches. Events are told at most once; where some are missing a line says so.

Examples:
  $ millrace events default
  $ millrace events video --json | jq 'select(.type == "job.buried")'`,
  )
  withJson(command, 'print the events, one a line: {"type","at","queue","id","task",…}').action(
    (name: string, flags: MillFlags) =>
      withMill(flags, async (mill, terminal) => {
        const over = new AbortController()
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
        const feed = mill.queue(name).events({ signal: over.signal })
        await feed.ready()
        if (!terminal.json)
          terminal.print(undefined, () => [terminal.colors.dim(`Watching ${name}, until interrupted.`)])
        for await (const event of feed) terminal.print(event, () => [liveLine(event, terminal)])
      }),
  )
}

/** The command `events`: prints the events of a queue's jobs in all processes, one line each, until interrupted. */

import type { Command } from 'commander'
import type { Mill } from '../../mill/mill.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { liveLine } from '../output/live-line.js'
import type { Terminal } from '../output/terminal.js'

export function addEvents(program: Command): void {
  const command = millCommand(program, 'events <queue>', 'Follow the events of the jobs of a queue').addHelpText(
    'after',
    `
  Prints starts, progress, ends and burials in all processes as they happen, until interrupted. Running workers begin to send
  them within about 3 s. Each event is printed at most once; if some are lost, a line says so.

Examples:
  $ millrace events default
  $ millrace events video --json | jq 'select(.type == "job.buried")'`,
  )
  withJson(command, 'print the events, one a line: {"type","at","queue","id","task",…}').action(
    (name: string, flags: MillFlags) => {
      const print = async (mill: Mill, terminal: Terminal) => {
        const over = new AbortController()
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
        const feed = mill.queue(name).events({ signal: over.signal })
        await feed.ready()
        if (!terminal.json)
          terminal.print(undefined, () => [terminal.colors.dim(`Watching ${name}, until interrupted.`)])
        for await (const event of feed) terminal.print(event, () => [liveLine(event, terminal)])
      }
      return withMill(flags, print, { isLong: true })
    },
  )
}

/** The command `doctor`: examines the store's server or file, and whether its queues match the configuration. */

import type { Command } from 'commander'
import { messageOf } from '../../core/messages/describe.js'
import type { Mill } from '../../mill/mill.js'
import type { FsckFinding } from '../../stores/contract/store-health.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printFindings } from '../terminal/finding-list.js'
import { deathFindings } from './queues/death-findings.js'
import { joinFindings } from './queues/join-findings.js'
import { shardFindings, silentThrottles, standstills, throttleFindings } from './queues/queue-findings.js'
import { scheduleFindings } from './queues/schedule-findings.js'

export function addDoctor(program: Command): void {
  const command = millCommand(
    program,
    'doctor',
    'Examine the store: its version, settings and rights, queues that stand still, joins and deaths that wait for long',
  ).addHelpText(
    'after',
    `
  ok: as it should be · warning: it works, with the stated limits · error: jobs may be lost, or calls fail
  It only reads. Exits with 1 if there is an error.

Example:
  $ millrace doctor --json | jq '.findings[] | select(.level != "ok")'`,
  )
  withJson(command, 'print {"store","findings":[{"level","what","text"}]}').action((flags: MillFlags) =>
    withMill(flags, (mill, terminal) =>
      printFindings(
        mill,
        terminal,
        'doctor',
        examined(mill).then((left) => left && { left }),
      ),
    ),
  )
}

async function examined(mill: Mill): Promise<FsckFinding[] | undefined> {
  const findings = await mill.examine()
  try {
    const queues = await queueFindings(mill)
    return findings === undefined && queues.length === 0 ? undefined : [...(findings ?? []), ...queues]
  } catch (error) {
    // If the store has health checks of its own, they have reported the cause.
    if (findings === undefined) throw error
    return [...findings, { level: 'warning', what: 'queues', text: `could not be read: ${oneLine(messageOf(error))}` }]
  }
}

/** A message whose mistakes stand on lines of their own, as one line. */
function oneLine(message: string): string {
  return message.replaceAll(/\s*\n\s*/g, ' ')
}

/** The findings about its queues, for every store. */
async function queueFindings(mill: Mill): Promise<FsckFinding[]> {
  const stored = (await mill.storedQueues()) ?? []
  const conflicts = throttleFindings(mill.queues, stored)
  // A conflict would refuse the call.
  const silent = conflicts.length > 0 ? [] : await silentThrottles(mill, stored)
  // Nothing opens then, and so nothing can be read.
  const joins = conflicts.length > 0 ? [] : await joinFindings(mill, stored)
  const deaths = conflicts.length > 0 ? [] : await deathFindings(mill, stored)
  const schedules = conflicts.length > 0 ? [] : await scheduleFindings(mill, stored)
  const still = await standstills(mill, stored)
  return [...shardFindings(mill.queues, stored), ...conflicts, ...silent, ...still, ...joins, ...deaths, ...schedules]
}

/** A supervised command: `millrace work` with its worker processes. */

import { CommandProcess, type Line } from '../command-process.js'

export const grace = ['--grace', '5s']

/** `millrace work --json` whose worker processes are ready. */
export async function working(cwd: string, args: readonly string[] = []) {
  const command = new CommandProcess(['work', '--json', ...grace, ...args], { cwd })
  const [{ pids } = {}] = await command.events('processes.started')
  return { command, pids: pids as number[] }
}

export const pidsOf = (lines: readonly Line[]) => lines.map(({ pid }) => pid as number)

/** A demo folder: files for the demo to work on, and a git repository made of them. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandProcess } from '../../cli/command-process.js'
import { project, root } from '../../cli/project.js'

/** What runs the demo, and the demo. */
export const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')
export const demo = join(root, 'examples/demo/demo.ts')

/** A folder with so many files, one of them empty, a link among them that is not to be followed. */
export function folderOf(files: number): { folder: string; home: string } {
  const cwd = project({})
  const [folder, home] = [join(cwd, 'files'), join(cwd, 'tmp')]
  for (const each of [folder, join(folder, 'deep'), home]) mkdirSync(each)
  for (let n = 0; n < files; n += 1) writeFileSync(join(folder, n % 2 ? 'deep' : '.', `file ${n}`), 'x'.repeat(n))
  symlinkSync('/etc/passwd', join(folder, 'link'))
  return { folder, home }
}

/** Makes a repository of it, in which every file is changed by each of so many commits. */
export function commitIn(folder: string, files: number, commits: number): void {
  const said: string[] = []
  for (let n = 0; n < commits; n += 1) {
    said.push(`commit refs/heads/main\nmark :${n + 1}\ncommitter Ada <ada@example.com> ${n} +0000\ndata 0\n`)
    if (n > 0) said.push(`from :${n}`)
    for (let file = 0; file < files; file += 1) said.push(`M 100644 inline ${file}.txt\ndata <<.\n${file} ${n}\n.\n`)
  }
  execFileSync('git', ['init', '-q', '-b', 'main', folder])
  execFileSync('git', ['-C', folder, 'fast-import', '--quiet'], { input: `${said.join('\n')}\n` })
}

/** Runs the demo on the folder to its end; `summary` is the line of JSON that it prints last. */
export async function ranDemo(folder: string, env: Readonly<Record<string, string>>, flags: readonly string[] = []) {
  const ended = await new CommandProcess([demo, folder, '--json', ...flags], { cwd: root, script, env }).ended
  const summary = ended.stdout.split('\n').find((line) => line.startsWith('{'))
  return { ...ended, summary: summary === undefined ? undefined : (JSON.parse(summary) as unknown) }
}

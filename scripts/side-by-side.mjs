/**
 * Runs npm scripts side by side, as many at once as the machine has cores: `node scripts/side-by-side.mjs types lint`. Put
 * the longest first. What each says is printed when it has ended. Exits with 1 if one fails, after all have ended.
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'

const waiting = process.argv.slice(2)

/** Runs one script after the other until none is left. */
async function runNext() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const said = []
    const child = spawn('npm', ['run', name], {
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32',
    })
    for (const output of [child.stdout, child.stderr]) output.on('data', (text) => said.push(text))
    const code = await new Promise((resolve) => child.once('close', resolve))
    process.stdout.write(Buffer.concat(said))
    if (code === 0) continue
    console.error(`npm run ${name} has failed`)
    process.exitCode = 1
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, runNext))

// The task tells its customer when it gives up, in onExhausted. The job kills its process (as the kernel does when memory is short).
// Right: onExhausted is called when the job is buried as `crashed`, as it is for an isolated task whose process is killed.
// Takes about 15 s; starts `npx millrace work`.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

for (const file of ['crash.db', 'crash.db-wal', 'crash.db-shm', 'told.txt']) rmSync(file, { force: true })
writeFileSync(
  'crash.config.mjs',
  `import { appendFileSync } from 'node:fs'
import { defineTask, millrace } from 'millrace'
const onExhausted = ({ job }) => appendFileSync('told.txt', job.task + ' ')
const retry = { max: 0 }
export const tasks = ['in-worker', 'isolated'].map((name) => defineTask({ name, queue: name, retry, onExhausted,
  ...(name === 'isolated' ? { isolate: 'process' } : {}), run: async () => process.kill(process.pid, 'SIGKILL') }))
export default millrace({ store: 'sqlite:crash.db', queues: { 'in-worker': { maxCrashes: 1 }, isolated: {} }, tasks })`,
)
const { default: mill, tasks } = await import(`${process.cwd()}/crash.config.mjs`)
for (const task of tasks) await mill.enqueue(task, {}, { id: task.name })
const worker = spawn('npx', ['millrace', 'work', '--config', 'crash.config.mjs', '--concurrency', '1'], {
  detached: true,
  stdio: 'ignore',
})
while ((await Promise.all(tasks.map(({ name }) => mill.queue(name).morgue.get(name)))).includes(undefined))
  await new Promise((on) => setTimeout(on, 300))
await new Promise((on) => setTimeout(on, 500))
const told = existsSync('told.txt') ? readFileSync('told.txt', 'utf8') : ''
console.log(told.includes('in-worker') ? 'ok' : 'WRONG', { told })
process.kill(-worker.pid, 'SIGKILL')
await mill.close()

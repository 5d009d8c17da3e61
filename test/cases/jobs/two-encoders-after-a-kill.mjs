// An isolated task runs an encoder. Somebody kills all node processes (kill -9), and `millrace work` is started again.
// Right: before the job runs again on the same machine, what is left of its first run is ended, so one encoder writes.
// Linux; takes about 25 s.
import { execSync, spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

for (const file of ['film.db', 'film.db-wal', 'film.db-shm', 'film.out']) rmSync(file, { force: true })
writeFileSync(
  'film.config.mjs',
  `import { execFile } from 'node:child_process'
import { defineTask, millrace } from 'millrace'
export const encode = defineTask({ name: 'encode', queue: 'films', isolate: 'process', timeLimit: '1h',
  run: () => new Promise((end) => execFile('sh', ['-c', 'for i in $(seq 120); do echo $$ >> film.out; sleep 0.5; done'], end)) })
export default millrace({ store: 'sqlite:film.db', queues: { films: { lease: '5s' } }, tasks: [encode] })`,
)
const { default: mill, encode } = await import(`${process.cwd()}/film.config.mjs`)
await mill.enqueue(encode, {}, { id: 'film' })
await mill.close()
const work = () =>
  spawn(process.execPath, ['node_modules/.bin/millrace', 'work', '--config', 'film.config.mjs'], {
    detached: true,
    stdio: 'ignore',
  })
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const below = (pid) => [
  pid,
  ...execSync(`ps -o pid= --ppid ${pid} || true`)
    .toString()
    .split(/\s+/)
    .filter(Boolean)
    .flatMap((child) => below(+child)),
]
const first = work()
while (!existsSync('film.out')) await sleep(200)
await sleep(1_000)
for (const pid of below(first.pid))
  if (/node/.test(readFileSync(`/proc/${pid}/comm`, 'utf8'))) process.kill(pid, 'SIGKILL')
const second = work()
await sleep(20_000)
const writers = new Set(readFileSync('film.out', 'utf8').trim().split('\n').slice(-8))
console.log(writers.size === 1 ? 'ok' : 'WRONG', { writers: [...writers] })
for (const pid of [...below(second.pid), ...writers])
  try {
    process.kill(+pid, 'SIGKILL')
  } catch {}

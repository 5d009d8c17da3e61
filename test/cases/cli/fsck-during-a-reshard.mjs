// `millrace fsck`, `doctor` and `stats` on a SQLite store while a reshard is under way, or after one was killed; the store is whole.
// Right: fsck finds no error, doctor does not recommend what is refused, and stats says why nothing of the queue starts.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

rmSync('.half-way', { recursive: true, force: true })
mkdirSync('.half-way')
writeFileSync(
  '.half-way/millrace.config.mjs',
  `import { defineOrderedTask, millrace } from 'millrace'
export const o = defineOrderedTask({ name: 'o', queue: 'o', id: (i) => i.id, run: () => {} })
export default millrace({ store: 'sqlite:${join(process.cwd(), '.half-way/jobs.db')}', tasks: [o], queues: { o: { shards: 4 } } })`,
)
const { default: mill, o } = await import(join(process.cwd(), '.half-way/millrace.config.mjs'))
for (let k = 0; k < 20; k += 1)
  await mill.enqueueMany(
    o,
    Array.from({ length: 1_000 }, (_, i) => ({ id: `${k}-${i}` })),
  )
const resharding = mill.queue('o').reshard(5)
await new Promise((begun) => setTimeout(begun, 150))
// While it runs this process sends no further step: the reshard stands half way, as after a kill.
const cli = join(dirname(createRequire(import.meta.url).resolve('millrace/package.json')), 'dist/cli/main.js')
const told = (command) => spawnSync(process.execPath, [cli, command], { cwd: '.half-way', encoding: 'utf8' })
const [fsck, doctor, stats] = ['fsck', 'doctor', 'stats'].map(told)
console.log(
  fsck.status === 0 && !/backup/.test(fsck.stdout)
    ? 'ok   fsck'
    : `WRONG fsck: ${fsck.stdout.split('\n').find((line) => /error/.test(line))}`,
)
console.log(/reshard o 4/.test(doctor.stdout) ? 'WRONG doctor: it recommends what is refused' : 'ok   doctor')
console.log(/reshard/i.test(stats.stdout) ? 'ok   stats' : 'WRONG stats: no word on why nothing starts')
console.log('moved', await resharding)
await mill.close()

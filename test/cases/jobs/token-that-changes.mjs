// The password of Redis is a token that lives 15 minutes (IAM of ElastiCache, Entra of Azure). `connect` signs a new one each time.
// Right: a new connection gets a new token, so the producer goes on after a reconnect.
// Needs redis-server on the PATH; uses port 21790.
import { execSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { defineTask, millrace } from 'millrace'

writeFileSync('token', 'one')
writeFileSync(
  'store.mjs',
  `import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { redisStore } from 'millrace'
const connect = () => new Redis({ port: 21790, password: readFileSync('token', 'utf8'), lazyConnect: true })
export const makeStore = ({ namespace, replicas }) => redisStore({ connect, namespace, replicas })`,
)
const server = spawn('redis-server', ['--port', '21790', '--bind', '127.0.0.1', '--save', '', '--requirepass', 'one'], {
  stdio: 'ignore',
})
await new Promise((resolve) => setTimeout(resolve, 1_000))
const task = defineTask({ name: 'task' })
const mill = millrace({ store: { module: './store.mjs', export: 'makeStore' }, tasks: [task] })
await mill.enqueue(task)
writeFileSync('token', 'two')
for (const line of ['-a one config set requirepass two', '-a two client kill type normal'])
  execSync(`redis-cli -p 21790 --no-auth-warning ${line}`)
await new Promise((resolve) => setTimeout(resolve, 3_000))
console.log(
  await mill.enqueue(task).then(
    () => 'ok',
    (error) => `WRONG ${error.code}`,
  ),
)
process.exit(server.kill() ? 0 : 1)

/** An emulator of SQS in place of ElasticMQ: `npx jiti emulator.ts [port]`. What it holds is gone when it ends. */

import { startFauxqs } from 'fauxqs'

const port = Number(process.argv[2] ?? 9324)
const emulator = await startFauxqs({ port, host: '127.0.0.1', logger: false })
console.log(`SQS is emulated at http://127.0.0.1:${emulator.port}`)

# A CommonJS project with Jest, as `nest new` makes it. Jest's own `require` loads no ES module, with --experimental-vm-modules
# either. Right: with the transformer of docs/testing.md ("Jest in a CommonJS project") the tests pass, in JavaScript and with ts-jest.
# TARBALL=/path/millrace-0.1.0.tgz sh jest-commonjs.sh
set -e
cd "$(mktemp -d)"
echo '{"private":true}' > package.json
npm install --silent "$TARBALL" jest@30 esbuild ts-jest@29 typescript@5.9 @types/jest@30 @types/node@20
for file in millrace-for-jest.cjs jest.config.cjs; do
  sed -n "\\|^// $file|,/^\`\`\`/p" node_modules/millrace/docs/testing.md | sed '$d' > $file
done
cat > mail.test.js <<'JS'
const { defineTask } = require('millrace')
const { testMill } = require('millrace/testing')
test('a mail is enqueued and sent', async () => {
  const mail = defineTask({ name: 'mail', run: async (to) => new Map([[to, new Date(0)]]) })
  const mill = testMill({ tasks: [mail] })
  await mill.enqueue(mail, 'ada')
  expect((await mill.enqueued(mail)).length).toBe(1)
  expect((await mill.drain())[0].result).toEqual(new Map([['ada', new Date(0)]]))
})
JS
npx jest
mkdir nest && cd nest
echo '{"private":true}' > package.json
echo '{"compilerOptions":{"module":"nodenext","target":"es2023","strict":true,"isolatedModules":true}}' > tsconfig.json
mkdir src
cat > src/mail.ts <<'TS'
import { defineTask } from 'millrace'
export const mail = defineTask({ name: 'mail', run: async (to: string) => ({ to }) })
TS
cat > src/mail.spec.ts <<'TS'
import { millrace } from 'millrace'
import { testMill } from 'millrace/testing'
import { mail } from './mail'
test('a mail is sent', async () => {
  const mill = testMill({ tasks: [mail] })
  await mill.enqueue(mail, 'ada')
  expect(await mill.drain()).toMatchObject([{ result: { to: 'ada' } }])
})
test('a worker on a real store sends it', async () => {
  const mill = millrace({ store: 'sqlite:./jobs.db', tasks: [mail] })
  await mill.worker().start()
  const job = await mill.enqueue(mail, 'ada')
  expect(await job.result({ timeout: '20s' })).toEqual({ to: 'ada' })
  await mill.close()
})
TS
cat > jest.config.cjs <<'JS'
module.exports = {
  rootDir: 'src',
  testRegex: '.*\\.spec\\.ts$',
  transform: {
    '/node_modules/millrace/.+\\.js$': '<rootDir>/../../millrace-for-jest.cjs',
    '^.+\\.(t|j)s$': 'ts-jest',
  },
  transformIgnorePatterns: ['/node_modules/(?!millrace/)'],
}
JS
npx jest && echo ok || { echo WRONG; exit 1; }

# A library or a package of a monorepo exports a function that enqueues, and is compiled with `declaration: true`.
# Right: tsc ends with 0.
set -e
cd "$(mktemp -d)"
echo '{"type":"module","private":true}' > package.json
npm install --silent "$TARBALL" typescript@5.9 @types/node@20
cat > send.ts <<'TS'
import { defineTask, millrace } from 'millrace'
const mail = defineTask({ name: 'mail', run: async ({ to }: { to: string }) => ({ sent: to }) })
const mill = millrace({ store: 'memory:', tasks: [mail] })
export const send = (to: string) => mill.enqueue(mail, { to })
export const sendAll = (all: string[]) => mill.enqueueMany(mail, all.map((to) => ({ to })))
TS
npx tsc --strict --declaration --module nodenext --target es2023 --outDir out send.ts && echo ok || { echo WRONG; exit 1; }

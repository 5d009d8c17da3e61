# The ordered task of the README, with `order.rev` read in the handler. Right: typed by the annotation of `id`, as `score` is.
cd "$(mktemp -d)"
echo '{"type":"module","private":true}' > package.json
npm install --silent "$TARBALL" typescript@5.9 @types/node@20
cat > sync.ts <<'TS'
import { defineOrderedTask } from 'millrace'
export const syncOrder = defineOrderedTask({
  name: 'sync-order',
  id: (order: { id: string; rev: number }) => order.id,
  score: (order) => order.rev,
  run: async (payloadsById) => {
    for (const [, orders] of payloadsById) console.log(orders.at(-1)?.rev)
  },
})
TS
npx tsc --strict --noEmit --module nodenext --target es2023 sync.ts && echo ok || { echo WRONG; exit 1; }

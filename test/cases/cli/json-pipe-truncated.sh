#!/bin/sh
# `--json` of the CLI into a pipe whose reader is slow.
# Right: all of the output arrives, however much it is; a Linux pipe holds 64 KiB. Run in a folder with the package installed.
cat > millrace.config.mjs <<'JS'
import { defineTask, millrace } from 'millrace'
export const t = defineTask({ name: 't', run: async () => {} })
export default millrace({ store: 'sqlite:.millrace/pipe.db', tasks: [t] })
JS
cat > fill.mjs <<'JS'
import mill, { t } from './millrace.config.mjs'
await mill.enqueueMany(t, Array.from({ length: 200 }, (_, n) => ({ n, text: 'x'.repeat(1000) })))
await mill.close()
JS
node fill.mjs
npx millrace jobs list --limit 200 --json > file.json
npx millrace jobs list --limit 200 --json | (sleep 1; cat) > pipe.json
[ "$(wc -c < pipe.json)" -gt 200000 ] && cmp file.json pipe.json && echo ok || echo WRONG "$(wc -c file.json pipe.json)"

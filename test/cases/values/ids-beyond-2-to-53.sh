# Three lines of an export with 64-bit ids. Right: three jobs, with these ids. Run in a folder where millrace is installed.
cat > ids.config.mjs <<'JS'
import { defineTask, millrace } from 'millrace'
export default millrace({ store: 'sqlite:ids/jobs.db', tasks: [defineTask({ name: 'post', async run() {} })] })
JS
rm -rf ids
printf '{"id":1234567890123456789,"to":"ada"}\n{"id":1234567890123456790,"to":"bob"}\n{"id":1234567890123456791,"to":"eve"}\n' |
  npx millrace enqueue post - --key id --config ids.config.mjs
npx millrace jobs list default --config ids.config.mjs --envelope
npx millrace jobs list default --config ids.config.mjs --envelope | grep -c '1234567890123456790' | grep -qx 1 && echo ok || { echo WRONG; exit 1; }

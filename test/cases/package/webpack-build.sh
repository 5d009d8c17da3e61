# Somebody bundles a program with webpack and has not read about serverExternalPackages.
# Right: it builds, and the first call says `package-bundled` with the remedy.
cd "$(mktemp -d)"
echo '{"type":"module","private":true}' > package.json
npm install --silent "$TARBALL" webpack@5 webpack-cli
cat > app.mjs <<'JS'
import { defineTask, millrace } from 'millrace'
const task = defineTask({ name: 'task', run: async (n) => n + 1 })
const mill = millrace({ store: 'sqlite:./x/jobs.db', tasks: [task] })
await mill.enqueue(task, 1).catch((error) => console.log(error.code))
await mill.close()
JS
cat > webpack.config.mjs <<'JS'
export default { mode: 'development', devtool: false, target: 'node20', entry: './app.mjs', experiments: { outputModule: true },
  output: { path: process.cwd() + '/out', filename: 'main.mjs', module: true, chunkFormat: 'module' } }
JS
npx webpack > log 2>&1; grep -E "^(ERROR|Module not found)" log
node out/main.mjs | grep -qx package-bundled && ! grep -q "^ERROR" log && echo ok || { echo WRONG; exit 1; }

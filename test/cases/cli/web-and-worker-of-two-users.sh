# The web server runs as www-data, the worker as another user, with one SQLite file between them, in a folder that both may write.
# Right: in such a folder (setgid, its group may write) all that Millrace makes is for the group too, whatever umask says (docs/stores/sqlite.md).
rm -rf shared; mkdir -m 2770 shared; chgrp nogroup shared; cat > two.mjs <<'JS'
import { defineTask, millrace } from 'millrace'
const mail = defineTask({ name: 'mail' })
const mill = millrace({ store: 'sqlite:shared/jobs.db', tasks: [mail] })
console.log(process.getuid(), await mill.enqueue(mail, {}).then(() => 'ok', ({ code, message }) => `WRONG: ${code} ${message.slice(0, 100)}`))
await mill.close()
JS
umask 022; node two.mjs; setpriv --reuid=65534 --regid=65534 --clear-groups node two.mjs; ls -l shared

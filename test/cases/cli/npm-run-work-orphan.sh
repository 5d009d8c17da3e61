#!/bin/sh
# `millrace init` writes the script "work" and says `npm run work`. A SIGTERM to npm (a PaaS start command, foreman, pm2)
# reaches the shell of npm only. Right: the supervisor stops by itself within a second of their end, as with `npx millrace work`.
# Run in an empty folder; $1 is the package, a tarball or nothing for the registry.
npm init -y > /dev/null && npm install "${1:-millrace}" > /dev/null 2>&1
npx millrace init > /dev/null && npm install > /dev/null 2>&1
npm run work > work.log 2>&1 &
npm=$!
for i in $(seq 60); do grep -q supervises work.log && break; sleep 0.5; done
supervisor=$(sed -n 's/.* \([0-9]*\) supervises.*/\1/p' work.log)
kill -TERM "$npm"
sleep 4
if kill -0 "$supervisor" 2> /dev/null; then verdict='still runs'; kill -TERM "$supervisor"; else verdict=stopped; fi
[ "$verdict" = stopped ] && echo ok || echo WRONG

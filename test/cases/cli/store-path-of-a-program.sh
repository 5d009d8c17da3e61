#!/bin/sh
# A program of an `init` project that is started in another folder (cron, systemd without WorkingDirectory, a monorepo root).
# Right: it finds the store of its project, as the command line does, and makes no second one. Run in an empty folder; $1: the package.
npm init -y > /dev/null && npm install "${1:-millrace}" > /dev/null 2>&1
npx millrace init > /dev/null && npm install > /dev/null 2>&1
mkdir elsewhere && cd elsewhere
../node_modules/.bin/jiti ../enqueue.ts
../node_modules/.bin/millrace jobs list --config ../millrace.config.ts > listed
cat listed
[ "$(ls -A)" = listed ] && ! grep -q none listed && echo ok || echo WRONG "$(ls -A)"

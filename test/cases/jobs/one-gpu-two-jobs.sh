# Two `millrace exec`, one for each GPU. Both are deployed anew while GPU 0 encodes; that of GPU 1 is back first.
# Right: the exec of GPU 1 leaves the process of GPU 0 to the exec of GPU 0, whose slot it keeps, and takes the next job: one on each GPU.
# (A slot also has a number that the command can see, MILLRACE_SLOT.) Run: sh one-gpu-two-jobs.sh (25 s)
rm -rf gpu; mkdir gpu; cat > gpu.config.mjs <<'JS'
import { millrace } from 'millrace'
export default millrace({ store: 'sqlite:gpu/jobs.db', queues: { gpu: {} }, tasksElsewhere: ['train'] })
JS
run() { CUDA_VISIBLE_DEVICES=$1 setsid node node_modules/.bin/millrace exec gpu --config gpu.config.mjs -- sh -c 'echo "$MILLRACE_JOB_ID on GPU $CUDA_VISIBLE_DEVICES" >> gpu/log; sleep 25' > /dev/null 2>&1 & }
enqueue() { node node_modules/.bin/millrace enqueue train '{}' --queue gpu --id $1 --config gpu.config.mjs > /dev/null; }
run 0; first=$!
sleep 3; enqueue long; sleep 3
kill -TERM $first; sleep 3
run 1; one=$!
sleep 4; run 0; zero=$!
sleep 4; enqueue next; sleep 5
cat gpu/log
[ "$(sort -u -k4 gpu/log | wc -l)" = 2 ] && echo ok || echo WRONG
kill -KILL $one $zero

# A mill with a codec of its own stores instances of a class. Right: its task compiles and runs, so the types of a task cannot
# refuse what the codec for JSON refuses: a task is defined before any mill, and does not know its codec.
# TARBALL=/path/millrace-0.1.0.tgz sh own-codec-takes-a-class.sh
set -e
cd "$(mktemp -d)"
echo '{"type":"module","private":true}' > package.json
npm install --silent "$TARBALL" typescript@5.9 @types/node@20
cat > money.ts <<'TS'
import { type Codec, defineTask, jsonCodec, millrace } from 'millrace'
class Money {
  constructor(readonly cents: number) {}
  plus(other: Money): Money {
    return new Money(this.cents + other.cents)
  }
}
const codec: Codec = {
  name: 'money',
  encode: (value) => jsonCodec.encode(value instanceof Money ? { money: value.cents } : { value }),
  decode(payload) {
    const { money, value } = jsonCodec.decode(payload) as { money?: number; value: unknown }
    return money === undefined ? value : new Money(money)
  },
}
const double = defineTask({ name: 'double', run: async (price: Money) => price.plus(price) })
const mill = millrace({ store: 'memory:', tasks: [double], codec })
await mill.worker().start()
const { cents } = (await (await mill.enqueue(double, new Money(21))).result()) as Money
console.log(cents === 42 ? 'ok' : 'WRONG', cents)
await mill.close()
TS
npx tsc --strict --module nodenext --target es2023 money.ts && node money.js

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { test } from 'node:test';
import fc from 'fast-check';
import { put16, u16 } from '../ipv4-frame.ts';
import { resolveExternal } from './external-resolver.ts';
import {
  answerQuery,
  clusterName,
  externalNameOf,
  type NameRecord,
  questionOf,
  reverseAddress,
} from './name-server.ts';
import { createNameTable } from './name-table.ts';

const query = (name: string, type = 1): Uint8Array => {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  const message = Uint8Array.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1]);
  return message;
};
const names: Record<string, NameRecord> = {
  'web.default.svc': { addresses: ['10.96.0.7'] },
  'many.default.svc': { addresses: Array.from({ length: 90 }, (_, i) => `100.64.0.${i}`) },
  '_http._tcp.web.default.svc': { addresses: [], services: [{ port: 80, target: 'web.default.svc' }] },
};
const lookup = (name: string): NameRecord | undefined => (Object.hasOwn(names, name) ? names[name] : undefined);
const codeOf = (answer: Uint8Array | undefined): number => (answer?.[3] ?? 255) & 15;
const answersOf = (answer: Uint8Array | undefined): number => u16(answer ?? new Uint8Array(12), 6);

test('answerQuery() answers names of the cluster, with and without its domain, in any case of letters', () => {
  for (const name of ['web.default.svc', 'web.default.svc.cluster.local', 'WEB.Default.SVC']) {
    const answer = answerQuery(query(name), lookup);
    assert.deepEqual([codeOf(answer), answersOf(answer), u16(answer!, 0)], [0, 1, 0x1234], name);
    assert.deepEqual([...answer!.subarray(-4)], [10, 96, 0, 7]);
  }
});

test('answerQuery() says that there is no such name, or nothing of that type, and leaves names of the world alone', () => {
  const unknown = answerQuery(query('no.default.svc'), lookup);
  assert.deepEqual([codeOf(unknown), answersOf(unknown), u16(unknown!, 8)], [3, 0, 1]);
  const ofOtherType = answerQuery(query('web.default.svc', 28), lookup);
  assert.deepEqual([codeOf(ofOtherType), answersOf(ofOtherType)], [0, 0]);
  assert.equal(answersOf(answerQuery(query('_http._tcp.web.default.svc', 33), lookup)), 1);
  assert.equal(answerQuery(query('example.com'), lookup), undefined);
  assert.equal(clusterName('svc.example.com'), undefined);
  assert.equal(codeOf(answerQuery(query('__proto__.default.svc'), lookup)), 3);
});

test('answerQuery() stays within a datagram, and turns the addresses', () => {
  const first = answerQuery(query('many.default.svc'), lookup, { turn: 0 });
  const next = answerQuery(query('many.default.svc'), lookup, { turn: 1 });
  assert.ok(first!.length <= 512 && answersOf(first) > 20);
  assert.notDeepEqual(first, next);
});

test('answerQuery() takes any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      const message = Uint8Array.from([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...bytes]);
      answerQuery(message, lookup);
      questionOf(bytes);
    }),
  );
  const answer = query('web.default.svc');
  put16(answer, 2, 0x8180);
  assert.equal(questionOf(answer), undefined, 'an answer is no question');
});

// S-1325: An ExternalName Service answers with the name that it stands for and the addresses of that, of the cluster and of
//   the world.
test('a name that stands for another is answered with both, and a circle comes to an end', () => {
  const aliases: Record<string, NameRecord> = {
    ...names,
    'near.default.svc': { addresses: [], alias: 'web.default.svc.cluster.local' },
    'far.default.svc': { addresses: [], alias: 'example.com' },
    'gone.default.svc': { addresses: [], alias: 'no.default.svc.cluster.local' },
    'round.default.svc': { addresses: [], alias: 'round.default.svc.cluster.local' },
  };
  const find = (name: string): NameRecord | undefined => aliases[name];
  const near = answerQuery(query('near.default.svc'), find);
  assert.deepEqual([codeOf(near), answersOf(near), [...near!.subarray(-4)]], [0, 2, [10, 96, 0, 7]]);
  assert.equal(externalNameOf(query('near.default.svc'), find), undefined);
  const gone = answerQuery(query('gone.default.svc'), find);
  assert.deepEqual([codeOf(gone), answersOf(gone)], [3, 1]);
  assert.equal(externalNameOf(query('far.default.svc'), find), 'example.com');
  assert.equal(externalNameOf(query('far.default.svc', 28), find), undefined, 'there are no addresses of IPv6 to give');
  const far = (addresses: string[], code: number): [number, number] => {
    const answer = answerQuery(query('far.default.svc'), find, { world: { addresses, code } });
    return [codeOf(answer), answersOf(answer)];
  };
  assert.deepEqual(far(['192.0.2.1', '192.0.2.2'], 0), [0, 3]);
  assert.deepEqual(far([], 3), [3, 1]);
  assert.deepEqual(far([], 2), [2, 1]);
  const named = answerQuery(query('far.default.svc', 5), find);
  assert.deepEqual([codeOf(named), answersOf(named)], [0, 1]);
  assert.ok(answersOf(answerQuery(query('round.default.svc'), find)) < 10);
});

test('an address of a Service, or of one host of a headless one, leads back to its name', () => {
  const table = createNameTable(() => 0);
  table.set({ name: 'web.default.svc', addresses: ['10.96.0.7'], isOwn: true });
  table.set({ name: 'all.default.svc', addresses: ['100.64.0.1'] });
  table.set({ name: 'host-a.all.default.svc', addresses: ['100.64.0.1'], isOwn: true });
  assert.equal(reverseAddress('7.0.96.10.in-addr.arpa'), '10.96.0.7');
  assert.deepEqual(table.lookup('7.0.96.10.in-addr.arpa')?.pointers, ['web.default.svc']);
  assert.deepEqual(table.lookup('1.0.64.100.in-addr.arpa')?.pointers, ['host-a.all.default.svc']);
  const answer = answerQuery(query('7.0.96.10.in-addr.arpa', 12), table.lookup);
  assert.deepEqual([codeOf(answer), answersOf(answer)], [0, 1]);
  assert.match(Buffer.from(answer!).toString('latin1'), /web.default.svc.cluster.local/);
  table.delete('web.default.svc');
  assert.equal(codeOf(answerQuery(query('7.0.96.10.in-addr.arpa', 12), table.lookup)), 3);
  assert.deepEqual(table.lookup('100-64-0-9.default.pod'), { addresses: ['100.64.0.9'] });
});

// S-1451: The name of a Service or guest whose only address has just gone, as while the guest moves, leads there for three
//   seconds more.
test('names lead to a guest also in the moment in which it moves', () => {
  let now = 0;
  const table = createNameTable(() => now);
  const moves = 'moves.default.svc';
  const led = (name: string) => table.lookup(name)?.addresses;
  table.set({ name: moves, addresses: ['100.64.0.1'] });
  table.set({ name: `ay.${moves}`, addresses: ['100.64.0.1'], isOwn: true });
  table.set({ name: moves, addresses: [] });
  table.delete(`ay.${moves}`);
  now = 2999;
  assert.deepEqual([led(moves), led(`ay.${moves}`)], [['100.64.0.1'], ['100.64.0.1']]);
  table.set({ name: moves, addresses: [] });
  now = 3000;
  assert.deepEqual([led(moves), led(`ay.${moves}`)], [[], undefined], 'after three seconds');
  table.set({ name: moves, addresses: ['100.64.0.2'] });
  table.set({ name: moves, addresses: [], alias: 'example.com' });
  assert.deepEqual(led(moves), [], 'another name is meant');
});

test('resolveExternal() says what a resolver answers, and how it did not', async (t) => {
  const server = createSocket('udp4');
  t.after(() => server.close());
  server.on('message', (message, { port, address }) => {
    const found = answerQuery(message, () => undefined, {}) ?? message;
    const { name = '' } = questionOf(message) ?? {};
    const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 192, 0, 2, 9];
    const answer = Buffer.concat([
      found.subarray(0, questionOf(message)?.end),
      Buffer.from(name === 'ok.test' ? record : []),
    ]);
    put16(answer, 2, 0x8180 | (name === 'no.test' ? 3 : name === 'bad.test' ? 2 : 0));
    put16(answer, 6, name === 'ok.test' ? 1 : 0);
    put16(answer, 8, 0);
    put16(answer, 10, 0);
    server.send(answer, port, address);
  });
  await new Promise<void>((done) => server.bind(0, '127.0.0.1', done));
  const ask = (name: string) => resolveExternal(name, [`127.0.0.1:${server.address().port}`]);
  assert.deepEqual(await ask('ok.test'), { addresses: ['192.0.2.9'], code: 0 });
  assert.deepEqual(await ask('no.test'), { addresses: [], code: 3 });
  assert.deepEqual(await ask('bad.test'), { addresses: [], code: 2 });
  assert.deepEqual(await ask('none.test'), { addresses: [], code: 0 });
});

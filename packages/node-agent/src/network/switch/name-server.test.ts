import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { put16, u16 } from '../ipv4-frame.ts';
import { answerQuery, clusterName, type NameRecord, questionOf } from './name-server.ts';

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
  const first = answerQuery(query('many.default.svc'), lookup, 0);
  const next = answerQuery(query('many.default.svc'), lookup, 1);
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

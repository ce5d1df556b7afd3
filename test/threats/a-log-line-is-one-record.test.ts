/** Threat 25: what users write into names, paths, agents and annotations forges no log line and no terminal command. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { compilePolicy } from '../../packages/apiserver/src/audit/policy.ts';
import { createLogger, formatRecord } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

const logs: string[] = [];
const audit: string[] = [];
let plane: TestPlane;
before(async () => {
  plane = await startPlane({
    log: createLogger((record) => void logs.push(formatRecord(record, 0)), 'debug'),
    audit: {
      policy: compilePolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'RequestResponse' }] }),
      sink: { write: (line) => void audit.push(line) },
    },
  });
});
after(() => plane.stop());

/** Nothing a terminal obeys, nothing that ends a line or turns it round. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones.
const HARMFUL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

test('a record is one line whatever its fields hold, and reads back as it was', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (message, value) => {
      const line = formatRecord({ level: 'info', message, fields: { value } }, 0);
      assert.equal(line.indexOf('\n'), line.length - 1);
      assert.doesNotMatch(line, HARMFUL);
      const back = JSON.parse(line);
      assert.deepEqual([back.msg, back.value], [message, value]);
    }),
  );
});

const EVIL = [
  '\u001b[2J\u001b[31mroot',
  'a\r\n{"level":"error","msg":"forged"}',
  '\u202etxt.exe',
  '\u009b31m',
  '\u0007',
  'a\u2028b',
  '\0',
];

// S-215
test('requests full of control characters: every line of log and audit is one record of its own', async () => {
  const as = ['admin', 'system:masters'] as const;
  for (const evil of EVIL) {
    const headers = { 'user-agent': evil, 'audit-id': evil, 'x-forwarded-for': evil, 'impersonate-user': evil };
    const metadata = { name: evil, annotations: { note: evil }, labels: { a: evil } };
    const path = '/api/v1/namespaces/default/configmaps';
    await plane.ask(`POST ${path}`, { as, body: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
    await plane.ask(`POST ${path}`, {
      as,
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'a-', annotations: { note: evil } } },
    });
    await plane.ask(`GET ${path}/${encodeURIComponent(evil)}?fieldSelector=${encodeURIComponent(evil)}`, {
      as,
      headers,
    });
    await plane.ask(`GET /apis/${encodeURIComponent(evil)}`, { as: [evil, evil] });
    await plane.ask('GET /api', { headers: { authorization: `Bearer ${evil}` } });
  }
  assert.ok(audit.length > 20);
  for (const line of audit) {
    assert.doesNotMatch(line, HARMFUL, line);
    assert.equal(JSON.parse(line).kind, 'Event');
  }
  for (const line of logs) {
    assert.doesNotMatch(line.slice(0, -1), HARMFUL, line);
    assert.doesNotThrow(() => JSON.parse(line));
  }
});

test('the answer’s headers carry nothing that ends a header', async () => {
  for (const evil of EVIL) {
    const { headers } = await plane.ask('GET /api', { as: ['a', 'system:masters'], headers: { 'audit-id': evil } });
    for (const [name, value] of Object.entries(headers)) assert.doesNotMatch(value, /[\r\n\0]/, name);
  }
});

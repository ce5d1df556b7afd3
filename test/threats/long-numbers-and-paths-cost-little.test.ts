/** Threat 20: long numbers and the paths of JSON patches cost what they are long, and no more. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const NAMESPACE = '/api/v1/namespaces/default';
/** Of the thread that all requests share: the worst take a quarter of a second, and took seconds. */
const MOST_MS = 1000;

let server: InProcessServer;
before(async () => {
  server = await startServer();
  await server.create(`${NAMESPACE}/configmaps`, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'm' },
    data: { a: '1' },
  });
});
after(() => server.stop());

const head = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}';
const digits = '9'.repeat(2_000_000);
const json = (number: string): string => `${head},"data":{"a":${number}}}`;
const yaml = (number: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nextra:\n  a: ${number}\n`;
const operations = (count: number, path: string, op = 'add'): string =>
  `[${Array(count).fill(`{"op":"${op}","path":"${path}","value":1}`).join(',')}]`;
const limitRange = (amount: string): string =>
  `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"x"},"spec":{"limits":[{"type":"Pod","max":{"cpu":${amount}}}]}}`;

const TYPES = {
  json: ['POST', 'configmaps', 'application/json'],
  yaml: ['POST', 'configmaps', 'application/yaml'],
  amount: ['POST', 'limitranges', 'application/json'],
  merge: ['PATCH', 'configmaps/m', 'application/merge-patch+json'],
  apply: ['PATCH', 'configmaps/m', 'application/apply-patch+yaml'],
  patch: ['PATCH', 'configmaps/m', 'application/json-patch+json'],
} as const;

const CASES: readonly (readonly [what: string, type: keyof typeof TYPES, body: string, status: number])[] = [
  ['a number of two million digits', 'json', json(digits), 400],
  ['a negative one', 'json', json(`-${digits}`), 400],
  ['one in a field that nobody reads', 'json', `${head.replace('"m"', '"x"')},"extra":${digits}}`, 201],
  ['a fraction of two million digits', 'json', json(`0.${digits}`), 400],
  ['an exponent of two million digits', 'json', json(`1e${digits}`), 400],
  ['thousands of numbers of a thousand digits', 'json', json(`[${Array(2800).fill('9'.repeat(1000)).join(',')}]`), 400],
  ['a number of YAML', 'yaml', yaml(digits), 201],
  ['one in base 16', 'yaml', yaml(`0x${'f'.repeat(2_000_000)}`), 201],
  ['one in base 8', 'yaml', yaml(`0o${'7'.repeat(2_000_000)}`), 201],
  ['an amount of two million digits', 'amount', limitRange(`"${digits}"`), 400],
  ['the same as a number', 'amount', limitRange(digits), 400],
  ['a merge patch with a long number', 'merge', `{"data":{"a":${digits}}}`, 400],
  ['an apply with a long number', 'apply', json(digits), 400],
  ['a JSON patch with a long number', 'patch', `[{"op":"add","path":"/data/a","value":${digits}}]`, 400],
  ['a path of half a million parts', 'patch', operations(1, '/a'.repeat(500_000)), 422],
  ['thousands of paths of a hundred parts', 'patch', operations(9000, `/data${'/a'.repeat(130)}`), 422],
  ['long paths to test', 'patch', operations(20, `/data${'/a'.repeat(70_000)}`, 'test'), 422],
  ['a long path to move from', 'patch', `[{"op":"move","from":"${'/a'.repeat(500_000)}","path":"/data/x"}]`, 422],
  ['an index of a million digits', 'patch', operations(1, `/metadata/finalizers/${'9'.repeat(1_000_000)}`), 422],
  ['a path of escapes', 'patch', operations(1, `/data/${'~0'.repeat(700_000)}`), 422],
];

// S-824: Numbers of millions of digits, in JSON, YAML, amounts and patches, and long paths of JSON patches cost what
//   they are long.
for (const [what, type, body, wanted] of CASES)
  test(`${what}: ${wanted}, at a price that fits its length`, async () => {
    const [method, resource, contentType] = TYPES[type];
    const query = `dryRun=All&fieldValidation=Ignore${type === 'apply' ? '&fieldManager=m' : ''}`;
    const began = process.threadCpuUsage();
    const { status, text } = await server.request(method, `${NAMESPACE}/${resource}?${query}`, {
      body,
      headers: { 'content-type': contentType },
    });
    const { user, system } = process.threadCpuUsage(began);
    assert.equal(status, wanted, text.slice(0, 300));
    assert.ok((user + system) / 1000 < MOST_MS, `${(user + system) / 1000} ms`);
  });

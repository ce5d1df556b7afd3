/** Threat 20: bodies that would blow up are refused at upstream's limits, and taken right below them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const PATH = '/api/v1/namespaces/default/configmaps';
let server: InProcessServer;
before(async () => {
  server = await startServer();
  await server.create(PATH, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'm' },
    data: { a: '1' },
  });
});
after(() => server.stop());

const head = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}';
const operations = (count: number): string =>
  `[${Array(count).fill('{"op":"add","path":"/data/a","value":"1"}').join(',')}]`;
const padded = (bytes: number): string =>
  `${head},"data":{"a":"${'x'.repeat(1000)}"}${' '.repeat(bytes - head.length - 1017)}}`;
const aliases = (levels: number, width: number): string =>
  Array.from(
    { length: levels },
    (_, at) =>
      `a${at}: &a${at} [${Array(width)
        .fill(at === 0 ? 'x' : `*a${at - 1}`)
        .join(',')}]`,
  ).join('\n');
const copies = (count: number): string =>
  `[{"op":"add","path":"/data/a","value":"${'x'.repeat(100_000)}"},${Array.from({ length: count }, (_, at) => `{"op":"copy","from":"/data/a","path":"/data/b${at}"}`).join(',')}]`;

const MIB = 1024 * 1024;
const CASES: readonly (readonly [string, string, string, string | Uint8Array, number])[] = [
  ['a body of 3 MiB', 'POST', 'application/json', padded(3 * MIB), 201],
  ['a body of 3 MiB and a byte', 'POST', 'application/json', padded(3 * MIB + 1), 413],
  ['lists 900 deep', 'POST', 'application/json', `${head},"extra":${'['.repeat(900)}${']'.repeat(900)}}`, 201],
  ['lists 10,001 deep', 'POST', 'application/json', `${head},"extra":${'['.repeat(10_001)}${']'.repeat(10_001)}}`, 400],
  ['lists without an end', 'POST', 'application/json', '['.repeat(2 * MIB), 400],
  ['objects without an end', 'POST', 'application/json', '{"a":'.repeat(500_000), 400],
  ['a YAML of nine levels of aliases', 'POST', 'application/yaml', aliases(9, 10), 400],
  ['a YAML of a hundred levels of aliases', 'POST', 'application/yaml', aliases(100, 2), 400],
  ['YAML lists without an end', 'POST', 'application/yaml', `a: ${'['.repeat(2 * MIB)}`, 400],
  ['YAML lists in lists on one line', 'POST', 'application/yaml', '- '.repeat(MIB), 400],
  [
    'brackets that are only text',
    'POST',
    'application/yaml',
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: "${'['.repeat(5000)}"\n  b: |\n    ${'{'.repeat(5000)}\n`,
    201,
  ],
  ['10,000 patch operations', 'PATCH', 'application/json-patch+json', operations(10_000), 200],
  ['10,001 patch operations', 'PATCH', 'application/json-patch+json', operations(10_001), 413],
  ['copies beyond 3 MiB', 'PATCH', 'application/json-patch+json', copies(40), 422],
  ['an exponent beyond all numbers', 'POST', 'application/json', `${head},"data":{"a":1e999999999}}`, 400],
  [
    'a key again and again',
    'POST',
    'application/json',
    `${head},"kind":"ConfigMap"${',"data":{}'.repeat(100_000)}}`,
    201,
  ],
];

for (const [what, method, type, body, wanted] of CASES) {
  test(`${what}: ${wanted}`, async () => {
    const target = method === 'PATCH' ? `${PATH}/m?dryRun=All` : `${PATH}?dryRun=All&fieldValidation=Ignore`;
    const { status, text } = await server.request(method, target, { body, headers: { 'content-type': type } });
    assert.equal(status, wanted, text.slice(0, 300));
  });
}

test('a compressed body is not unpacked without a bound', async () => {
  const { status } = await server.request('POST', PATH, {
    body: gzipSync(new Uint8Array(48 * MIB)),
    headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' },
  });
  assert.ok(status >= 400 && status < 500, String(status));
});

test('a thousand mistakes are reported, the rest is counted: an answer does not outgrow its question', async () => {
  const labels = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`l ${at}`, ' v']));
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', labels } };
  const { status, json, text } = await server.request('POST', PATH, { body });
  assert.equal(status, 422);
  assert.ok(json.details.causes.length <= 1000);
  assert.match(json.message, /and \d+ more\]$/);
  assert.ok(text.length < 2 * MIB, String(text.length));
});

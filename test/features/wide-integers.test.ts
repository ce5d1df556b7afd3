import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
  await establish(
    server,
    definition({
      name: 'count',
      spec: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: {
          total: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 5' }] },
          small: { type: 'integer', format: 'int32' },
          share: { type: 'number', maximum: 1e18 },
        },
      },
      version: { additionalPrinterColumns: [{ name: 'Total', type: 'integer', jsonPath: '.spec.total' }] },
    }),
  );
});
after(() => server.stop());

const COUNTS = '/apis/example.com/v1/namespaces/default/counts';
const MAX = '9223372036854775807';
/** Written by hand: what JSON.stringify would write is what is to be seen. */
const count = (name: string, spec: string): string =>
  `{"apiVersion":"example.com/v1","kind":"Count","metadata":{"name":"${name}"},"spec":${spec}}`;
const post = (name: string, spec: string) =>
  server.request('POST', COUNTS, {
    body: new TextEncoder().encode(count(name, spec)),
    headers: { 'content-type': 'application/json' },
  });

// S-256: An int64 keeps all its digits; where a built-in kind counts with it, a number that would lose some is refused.
// Compat Writing, P1, yes: an int64 of a custom resource keeps all its digits
test('an int64 of a custom resource keeps all its digits on every way', async () => {
  const watch = await server.watch(`${COUNTS}?watch=1&fieldSelector=metadata.name=wide`);
  const made = await post('wide', `{"total":${MAX},"num":{"least":-9223372036854775808,"odd":[9007199254740993]}}`);
  assert.equal(made.status, 201, made.text);
  const kept = /"total":9223372036854775807/;
  assert.match(made.text, kept);
  assert.match(made.text, /"least":-9223372036854775808,"odd":\[9007199254740993\]/);
  for (const path of [`${COUNTS}/wide`, COUNTS]) assert.match((await server.request('GET', path)).text, kept);
  assert.match((await server.request('GET', `${COUNTS}/wide?pretty=1`)).text, /"total": 9223372036854775807/);
  const yaml = await server.request('GET', `${COUNTS}/wide`, { headers: { accept: 'application/yaml' } });
  assert.match(yaml.text, /total: 9223372036854775807/);
  const table = await server.request('GET', COUNTS, {
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  });
  assert.match(table.text, /"cells":\["wide",9223372036854775807\]/);
  const patched = await server.request('PATCH', `${COUNTS}/wide`, {
    body: { metadata: { labels: { a: 'b' } } },
    headers: { 'content-type': 'application/merge-patch+json' },
  });
  assert.match(patched.text, kept);
  const stepped = await server.request('PATCH', `${COUNTS}/wide`, {
    body: new TextEncoder().encode('[{"op":"replace","path":"/spec/total","value":9223372036854775806}]'),
    headers: { 'content-type': 'application/json-patch+json' },
  });
  assert.match(stepped.text, /"total":9223372036854775806/);
  const applied = await server.request('PATCH', `${COUNTS}/applied?fieldManager=m`, {
    body: new TextEncoder().encode(
      `apiVersion: example.com/v1\nkind: Count\nmetadata: {name: applied}\nspec:\n  total: ${MAX}\n`,
    ),
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });
  assert.match(applied.text, kept);
  assert.equal((await watch.next())?.type, 'ADDED');
  watch.close();
});

// S-256
test('a wide integer is checked as any integer is', async () => {
  const low = await post('low', `{"total":-${MAX}}`);
  assert.match(low.json.message, /failed rule: self > 5/);
  const narrow = await post('narrow', `{"total":6,"small":${MAX}}`);
  assert.match(narrow.json.message, /Checked value must be of type integer with format int32/);
  const large = await post('large', `{"total":6,"share":${MAX}}`);
  assert.match(large.json.message, /should be less than or equal to/);
  const text = await post('text', `{"total":"${MAX}"}`);
  assert.match(text.json.message, /must be of type integer: "string"/);
});

// S-256
test('what is counted with may not lose digits', async () => {
  const answer = await server.request('POST', '/api/v1/namespaces/default/pods', {
    body: new TextEncoder().encode(
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"terminationGracePeriodSeconds":${MAX}}}`,
    ),
    headers: { 'content-type': 'application/json' },
  });
  assert.equal(answer.status, 400, answer.text);
  assert.match(answer.json.message, /cannot keep number 9223372036854775807/);
});

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { envelope } from '../../../../test/fuzz/protobuf-bombs.ts';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { createLargeWork } from './large-work.ts';

const reader = createLargeWork();
after(() => reader.close());
const utf8 = new TextEncoder();
const yaml = (text: string) => reader.read({ type: 'application/yaml', bytes: utf8.encode(text) });
const read = async (reading: ReturnType<typeof yaml>): Promise<unknown> =>
  JSON.parse(new TextDecoder().decode((await reading).json));
const as = (owner: string) => ({ owner, signal: new AbortController().signal });
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

// S-258: Large bodies are decoded on a thread of their own; what takes too long there is refused, and the next
//   body finds a new thread.
test('YAML comes back as JSON, with what was given twice', async () => {
  assert.deepEqual(await read(yaml('a: yes\nb: [1, 0x10]\n')), { a: true, b: [1, 16] });
  const { duplicates } = await yaml('a: 1\na: 2\n');
  assert.deepEqual(duplicates, ['line 2: key "a" already set in map']);
});

// S-258
test('protobuf comes back as JSON', async () => {
  const bytes = envelope(Uint8Array.from([0x0a, 3, 0x0a, 1, 0x61]));
  assert.deepEqual(await read(reader.read({ type: PROTOBUF, bytes })), {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name: 'a' },
  });
});

// S-258
test('what does not decode is refused as on this thread, and the next one is read', async () => {
  await assert.rejects(yaml('a: [1'), (error) => error instanceof ApiError && error.code === 400);
  assert.deepEqual(await read(yaml('a: b')), { a: 'b' });
});

// S-258
test('bodies that wait are all answered, each with its own', async () => {
  const texts = Array.from({ length: 20 }, (_, at) => `at: ${at}`);
  assert.deepEqual(
    await Promise.all(texts.map((text) => read(yaml(text)))),
    texts.map((_, at) => ({ at })),
  );
});

// S-258
// S-479
test('what takes too long is refused; those behind it find a new thread', async () => {
  const hasty = createLargeWork({ patience: 2000 });
  const document = (text: string) => ({ type: 'application/yaml', bytes: utf8.encode(text) });
  const slow = document('a: b\n'.repeat(500_000));
  const refused = (error: unknown) => error instanceof ApiError && /takes more time/.test(error.message);
  const behind = hasty.read(slow);
  const third = hasty.read(document('a: b'), as('third'));
  await assert.rejects(behind, refused);
  await Promise.all([assert.rejects(hasty.read(slow), refused), third.then(({ json }) => assert.ok(json.length > 0))]);
  await hasty.close();
});

// S-479: Owners take turns on the thread that reads large documents, and one that takes too long ends alone.
test('whoever sends many documents waits behind whoever sends one', async () => {
  const fair = createLargeWork();
  const order: string[] = [];
  const send = (owner: string, text: string) =>
    fair.read({ type: 'application/yaml', bytes: utf8.encode(text) }, as(owner)).then(() => void order.push(owner));
  await Promise.all([...Array.from({ length: 10 }, () => send('many', 'a: b')), send('one', 'c: d')]);
  assert.ok(order.indexOf('one') <= 2, order.join(' '));
  await fair.close();
});

// S-825: A YAML or protobuf body that takes long to read holds up others like it only: whoever else sends one waits for
//   it a second at most.
test('documents that take long wait for each other, and nobody else waits for them', async () => {
  const fair = createLargeWork({ quick: 1500, patience: 60_000 });
  const order: string[] = [];
  const send = (owner: string, text: string) =>
    fair
      .read({ type: 'application/yaml', bytes: utf8.encode(text) }, as(owner))
      .then(() => owner, String)
      .then((outcome) => void order.push(outcome));
  const long = 'a: b\n'.repeat(500_000);
  const greedy = ['greedy', 'greedy too'].map((owner) => send(owner, long));
  await Promise.all(['one', 'two', 'three'].map((owner) => send(owner, 'c: d')));
  assert.deepEqual(order, ['one', 'two', 'three']);
  await fair.close();
  await Promise.all(greedy);
  assert.deepEqual(order.slice(3), Array(2).fill('Error: the server stops'));
});

// S-825
test('what moves to where long documents are read is answered all the same, each with its own', async () => {
  const fair = createLargeWork({ quick: 0, patience: 60_000 });
  const texts = Array.from({ length: 6 }, (_, at) => `at: ${at}\n${'a: b\n'.repeat(5000)}`);
  const answers = await Promise.all(
    texts.map((text, at) => fair.read({ type: 'application/yaml', bytes: utf8.encode(text) }, as(`owner-${at % 2}`))),
  );
  assert.deepEqual(
    answers.map(({ json }) => JSON.parse(new TextDecoder().decode(json))),
    texts.map((_, at) => ({ at, a: 'b' })),
  );
  await fair.close();
});

// S-294: Bodies that wait for the thread that reads them are bounded.
test('beyond its bounds a body is refused for now, and later taken', async () => {
  const isTooMany = (error: unknown) =>
    error instanceof ApiError && error.code === 429 && error.status.details?.retryAfterSeconds === 1;
  const body = (text: string) => ({ type: 'application/yaml', bytes: utf8.encode(text) });
  const narrow = createLargeWork({ maxDocuments: 4, maxBytes: 20 });
  const taken = [narrow.read(body('a: 1')), narrow.read(body('b: 2'))];
  await assert.rejects(narrow.read(body('c: 3')), isTooMany, 'a third one');
  assert.deepEqual(await Promise.all(taken.map(read)), [{ a: 1 }, { b: 2 }]);

  const large = narrow.read(body('large: document'));
  await assert.rejects(narrow.read(body('a: 1')), isTooMany, 'more bytes');
  assert.deepEqual(await read(large), { large: 'document' });
  assert.deepEqual(await read(narrow.read(body('c: 3'))), { c: 3 });

  // What went with the thread is not counted any more.
  const lost = [narrow.read(body('d: 4')), narrow.read(body('e: 5'))];
  const gone = Promise.all(lost.map((one) => assert.rejects(one, /the server stops/)));
  await narrow.close();
  await gone;
  assert.deepEqual(await read(narrow.read(body('f: 6'))), { f: 6 });
  await narrow.close();
});

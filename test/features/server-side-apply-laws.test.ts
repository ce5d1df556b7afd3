/** Laws of server-side apply, held against a model: who owns a field is who last said its value, and nobody else. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const PATH = '/api/v1/namespaces/default/configmaps';
const MANAGERS = ['one', 'two', 'three'] as const;
let server: InProcessServer;
let serial = 0;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

/** Leaves as `data/a` and `labels/b` with their values, and members of the set of finalizers as `finalizers/c`. */
type Leaves = Readonly<Record<string, string>>;
const SLOTS = ['data/a', 'data/b', 'data/c', 'labels/a', 'labels/b', 'finalizers/x.io/a', 'finalizers/x.io/b'];
const leaves: fc.Arbitrary<Leaves> = fc.dictionary(fc.constantFrom(...SLOTS), fc.constantFrom('1', '2'), {
  maxKeys: 6,
});
/** A member of a set has no value to disagree about. */
const heldAs = (slot: string, value: string): string => (slot.startsWith('finalizers/') ? '' : value);

function configOf(name: string, said: Leaves): object {
  const data: Record<string, string> = {};
  const labels: Record<string, string> = {};
  const finalizers: string[] = [];
  for (const [slot, value] of Object.entries(said)) {
    const [kind, key] = [slot.slice(0, slot.indexOf('/')), slot.slice(slot.indexOf('/') + 1)];
    if (kind === 'data') data[key] = value;
    else if (kind === 'labels') labels[key] = value;
    else finalizers.push(key);
  }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(finalizers.length > 0 && { finalizers }),
    },
    ...(Object.keys(data).length > 0 && { data }),
  };
}

const apply = (name: string, manager: string, said: Leaves, force = false) =>
  server.request('PATCH', `${PATH}/${name}?fieldManager=${manager}${force ? '&force=true' : ''}`, {
    body: configOf(name, said),
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });

// biome-ignore lint/suspicious/noExplicitAny: an object as it came.
type Wire = any;

/** What an object holds, and who owns it by managedFields. */
function read(object: Wire): { held: Record<string, string>; owners: Record<string, string[]> } {
  const held: Record<string, string> = {};
  for (const [key, value] of Object.entries<string>(object.data ?? {})) held[`data/${key}`] = value;
  for (const [key, value] of Object.entries<string>(object.metadata.labels ?? {})) held[`labels/${key}`] = value;
  for (const key of object.metadata.finalizers ?? []) held[`finalizers/${key}`] = '';
  const owners: Record<string, string[]> = {};
  for (const { manager, fieldsV1 } of object.metadata.managedFields ?? []) {
    const own = (slot: string): void => {
      owners[slot] = [...(owners[slot] ?? []), manager].sort();
    };
    for (const key of Object.keys(fieldsV1['f:data'] ?? {})) if (key !== '.') own(`data/${key.slice(2)}`);
    const metadata = fieldsV1['f:metadata'] ?? {};
    for (const key of Object.keys(metadata['f:labels'] ?? {})) if (key !== '.') own(`labels/${key.slice(2)}`);
    for (const key of Object.keys(metadata['f:finalizers'] ?? {}))
      if (key !== '.') own(`finalizers/${JSON.parse(key.slice(2))}`);
  }
  return { held, owners };
}

const causeOf: Readonly<Record<string, string>> = {
  'data/a': '.data.a',
  'data/b': '.data.b',
  'data/c': '.data.c',
  'labels/a': '.metadata.labels.a',
  'labels/b': '.metadata.labels.b',
};

// S-213: Owners of fields obey laws under random applies: who said a value owns it, and conflicts are symmetric.
test('fields have the owners that said their value; who says another conflicts, or takes it by force', async () => {
  const step = fc.record({ manager: fc.constantFrom(...MANAGERS), said: leaves, force: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 7 }), async (steps) => {
      const name = `law-${serial++}`;
      const model = new Map<string, { value: string; owners: Set<string> }>();
      for (const { manager, said, force } of steps) {
        const answer = await apply(name, manager, said, force);
        const conflicts = Object.entries(said).filter(([slot, value]) => {
          const known = model.get(slot);
          return known && known.value !== heldAs(slot, value) && [...known.owners].some((owner) => owner !== manager);
        });
        if (conflicts.length > 0 && !force) {
          assert.equal(answer.status, 409, answer.text);
          const reported = new Set(answer.json.details.causes.map(({ field }: { field: string }) => field));
          assert.deepEqual(reported, new Set(conflicts.map(([slot]) => causeOf[slot])));
          continue;
        }
        assert.ok(answer.status === 200 || answer.status === 201, answer.text);
        for (const [slot, value] of Object.entries(said)) {
          const known = model.get(slot);
          const next = heldAs(slot, value);
          if (known?.value === next) known.owners.add(manager);
          else model.set(slot, { value: next, owners: new Set([manager]) });
        }
        for (const [slot, known] of model) {
          if (slot in said || !known.owners.delete(manager)) continue;
          if (known.owners.size === 0) model.delete(slot);
        }
        const { held, owners } = read(answer.json);
        assert.deepEqual(held, Object.fromEntries([...model].map(([slot, { value }]) => [slot, value])));
        assert.deepEqual(
          owners,
          Object.fromEntries([...model].map(([slot, known]) => [slot, [...known.owners].sort()])),
        );
        const again = await apply(name, manager, said);
        assert.equal(again.json.metadata.resourceVersion, answer.json.metadata.resourceVersion, 'applied twice');
      }
    }),
    { numRuns: 120 },
  );
});

// S-213
test('conflicts are symmetric: what stands in B’s way after A stands in A’s way after B', async () => {
  const causes = (answer: { json: Wire }): string[] =>
    (answer.json.details?.causes ?? []).map(({ field }: { field: string }) => field).sort();
  await fc.assert(
    fc.asyncProperty(leaves, leaves, async (a, b) => {
      const names = [`sym-${serial++}`, `sym-${serial++}`] as const;
      await apply(names[0], 'one', a);
      await apply(names[1], 'two', b);
      const [second, first] = [await apply(names[0], 'two', b), await apply(names[1], 'one', a)];
      assert.deepEqual(causes(second), causes(first));
      if (second.status === 200) assert.deepEqual(read(second.json), read(first.json), 'the order is of no account');
    }),
    { numRuns: 100 },
  );
});

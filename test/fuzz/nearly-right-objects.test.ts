/** Objects of every kind that are nearly right, created and replaced in a dry run: refused or taken, never a 500. */
// test:full: random objects for a minute.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { builtinResources } from '../../packages/apiserver/src/kinds/builtin/builtin-resources.ts';
import { kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';
import { seed } from '../testkit/seed.ts';
import { nearly } from './odd-values.ts';

const ROUNDS = 30;
let state = seed;
/** A linear congruence: what is asked depends on the seed alone. */
const random = (): number => {
  state = (state * 1_664_525 + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};

let board: InProcessControlPlane;
before(async () => {
  board = await startInProcess();
  // No controller does it here, and Pods wait for it.
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await board.send('POST', '/api/v1/namespaces/default/serviceaccounts', account);
});
after(() => board.stop());

// biome-ignore lint/suspicious/noExplicitAny: OpenAPI documents, read field by field.
type Document = any;

// S-221: Objects of every kind that are nearly right are refused or taken, never answered with a 500.
test('nearly right objects of every kind', async (t) => {
  t.diagnostic(`CORACLE_SEED=${seed}`);
  let kinds = 0;
  for (const info of [...builtinResources(), ...kubevirtResources()]) {
    if (!info.verbs.includes('create')) continue;
    const gv = `${info.group === '' ? 'api' : `apis/${info.group}`}/${info.version}`;
    const document: Document = (await board.send('GET', `/openapi/v3/${gv}`)).json;
    const schemas: Readonly<Record<string, Document>> = document.components?.schemas ?? {};
    const schema = Object.values(schemas).find((candidate) =>
      candidate['x-kubernetes-group-version-kind']?.some(({ kind }: Document) => kind === info.kind),
    );
    if (!schema) continue;
    kinds++;
    const collection = `/${gv}${info.namespaced ? '/namespaces/default' : ''}/${info.resource}`;
    for (let round = 0; round < ROUNDS; round++) {
      const given = nearly(random, schema, (ref) => schemas[ref.slice(ref.lastIndexOf('/') + 1)]) as Document;
      const metadata = { ...given?.metadata, name: 'fuzz', ...(info.namespaced && { namespace: 'default' }) };
      for (const field of ['uid', 'resourceVersion', 'deletionTimestamp', 'managedFields', 'ownerReferences'])
        delete metadata[field];
      const apiVersion = info.group === '' ? info.version : `${info.group}/${info.version}`;
      const object = { ...given, apiVersion, kind: info.kind, metadata };
      for (const [method, path] of [
        ['POST', collection],
        ['PUT', `${collection}/fuzz`],
      ] as const) {
        const { status, json } = await board.send(method, `${path}?dryRun=All`, object);
        assert.ok(
          status < 500,
          `CORACLE_SEED=${seed}: ${method} ${path}: ${json.message} for ${JSON.stringify(object).slice(0, 2000)}`,
        );
      }
    }
  }
  assert.ok(kinds > 80, `${kinds} kinds`);
});

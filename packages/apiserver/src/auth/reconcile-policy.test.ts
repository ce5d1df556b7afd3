import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import type { PolicyRule } from '../../../apimachinery/src/types/types.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { NEVER } from '../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createObjectStore } from '../cache/create-object-store.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import type { PolicyRole } from './bootstrap-policy.ts';
import { reconcilePolicy } from './reconcile-policy.ts';

const READ: PolicyRule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
const WRITE: PolicyRule = { verbs: ['delete'], apiGroups: [''], resources: ['secrets'] };

const role = (rules: readonly PolicyRule[], exact?: boolean): PolicyRole => ({
  kind: 'ClusterRole',
  name: 'coracle:part',
  rules,
  ...(exact !== undefined && { exact }),
});

/** Rules stored after one set of roles, then another, was reconciled; `touch` edits the object in between. */
async function rulesAfter(
  rounds: readonly PolicyRole[],
  touch: (object: UnstructuredObject) => void = () => {},
): Promise<unknown> {
  const store = await createObjectStore({
    backend: createMemoryBackend(),
    clock: createFakeClock(0),
    log: silentLogger,
    signal: NEVER,
  });
  const key = { prefix: 'rbac.authorization.k8s.io/clusterroles', namespace: '', name: 'coracle:part' };
  for (const next of rounds) {
    await reconcilePolicy(store, { roles: [next], bindings: [] }, () => {});
    await store.write(key, (current) => {
      const object = structuredClone(current!.object) as UnstructuredObject;
      touch(object);
      return { type: 'put', object };
    });
  }
  const { rules } = store.peek(key)!.object as unknown as { rules: unknown };
  await store.close();
  return rules;
}

// S-137: A component's role holds exactly its rules: those of an older version go.
test('an exact role holds the rules it names: those of an older version go, those added by hand as well', async () => {
  assert.deepEqual(await rulesAfter([role([READ, WRITE], true), role([READ], true)]), [READ]);
  assert.deepEqual(await rulesAfter([role([READ], true), role([WRITE], true)]), [WRITE]);
  const widened = (object: UnstructuredObject): void => {
    if ((object as unknown as { rules: unknown[] }).rules.length === 1)
      (object as unknown as { rules: unknown[] }).rules.push(WRITE);
  };
  const rounds = [role([READ], true), role([READ], true)];
  assert.deepEqual(await rulesAfter(rounds, widened), [READ, WRITE], 'the edit itself is stored');
  assert.deepEqual(await rulesAfter([...rounds, role([READ], true)], () => {}), [READ]);
});

// Compat Authorisation, P0, yes: default roles and bindings, reconciled at start
test('a default role is only added to; one marked as not to be updated is left alone', async () => {
  assert.deepEqual(await rulesAfter([role([READ, WRITE]), role([READ])]), [READ, WRITE]);
  const pinned = (object: UnstructuredObject): void => {
    object.metadata.annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' };
  };
  assert.deepEqual(await rulesAfter([role([READ], true), role([WRITE], true)], pinned), [READ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createObjectStore } from '../cache/create-object-store.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import type { UserInfo } from './identity.ts';
import { createRbac, RBAC_GROUP } from './rbac.ts';

const newStore = (): Promise<ObjectStore> =>
  createObjectStore({
    backend: createMemoryBackend(),
    clock: createFakeClock(),
    log: silentLogger,
    signal: new AbortController().signal,
  });

interface Key {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

const write = (store: ObjectStore, { resource, namespace, name }: Key, more: object | undefined) =>
  store.write({ prefix: `${RBAC_GROUP}/${resource}`, namespace, name }, (current) =>
    more === undefined
      ? current
        ? { type: 'delete', object: current.object }
        : { type: 'keep' }
      : {
          type: 'put',
          object: {
            kind: 'K',
            apiVersion: `${RBAC_GROUP}/v1`,
            metadata: { name, ...(namespace && { namespace }) },
            ...more,
          },
        },
  );

const user = (username: string): UserInfo => ({ username, groups: ['staff'] });
const may = {
  type: 'resource',
  verb: 'get',
  group: '',
  version: 'v1',
  resource: 'pods',
  subresource: '',
  name: 'p',
} as const;
const refTo = (name: string, kind = 'Role') => ({ roleRef: { kind, name } });
const rules = (resource: string) => ({ rules: [{ verbs: ['get'], apiGroups: [''], resources: [resource] }] });
const people = (...names: string[]) => ({ subjects: names.map((name) => ({ kind: 'User', name })) });

// S-329
test('a write of a binding does not make it look at the others again', async () => {
  const store = await newStore();
  let lists = 0;
  const counted: ObjectStore = Object.create(store, {
    list: {
      value: (...call: Parameters<ObjectStore['list']>) => {
        lists++;
        return store.list(...call);
      },
    },
  });
  for (const method of ['revision', 'get', 'peek', 'watch', 'count'] as const) {
    Object.defineProperty(counted, method, { value: store[method].bind(store) });
  }
  await write(store, { resource: 'roles', namespace: 'a', name: 'r' }, rules('pods'));
  const rbac = createRbac(counted);
  await Promise.resolve();
  const before = lists;
  for (const name of ['u', 'v']) {
    await write(store, { resource: 'rolebindings', namespace: 'a', name }, { ...people(name), ...refTo('r') });
    assert.equal(rbac.authorize(user(name), { ...may, namespace: 'a' }).allowed, true);
    assert.equal(rbac.authorize(user(name), { ...may, namespace: 'b' }).allowed, false);
  }
  assert.equal(lists, before);
  await write(store, { resource: 'rolebindings', namespace: 'a', name: 'u' }, undefined);
  assert.equal(rbac.authorize(user('u'), { ...may, namespace: 'a' }).allowed, false);
  assert.equal(rbac.authorize(user('v'), { ...may, namespace: 'a' }).allowed, true);
  rbac.stop();
  await store.close();
});

test('bindings of the cluster are reported first, then the others in the order of their keys', async () => {
  const store = await newStore();
  await write(store, { resource: 'clusterroles', namespace: '', name: 'c' }, rules('pods'));
  const rbac = createRbac(store);
  await Promise.resolve();
  const reason = () => rbac.authorize(user('u'), { ...may, namespace: 'a' }).reason;
  const bind = (resource: string, namespace: string, name: string) =>
    write(store, { resource, namespace, name }, { ...people('u', 'u'), ...refTo('c', 'ClusterRole') });
  await bind('rolebindings', 'a', 'z');
  assert.equal(reason(), 'RBAC: allowed by RoleBinding "z/a" of ClusterRole "c" to User "u"');
  await bind('rolebindings', 'a', 'm');
  assert.equal(reason(), 'RBAC: allowed by RoleBinding "m/a" of ClusterRole "c" to User "u"');
  await bind('clusterrolebindings', '', 'zz');
  assert.equal(reason(), 'RBAC: allowed by ClusterRoleBinding "zz" of ClusterRole "c" to User "u"');
  rbac.stop();
  await store.close();
});

// S-329
test('after any writes it says what one that starts anew says', async () => {
  const name = fc.constantFrom('a', 'b', 'c');
  const subject = fc.oneof(
    name.map((one) => ({ kind: 'User', name: one })),
    fc.constant({ kind: 'Group', name: 'staff' }),
    name.map((one) => ({ kind: 'ServiceAccount', name: one })),
    name.map((one) => ({ kind: 'ServiceAccount', name: one, namespace: 'a' })),
  );
  const label = fc.constantFrom({}, { labels: { collect: 'me' } });
  const role = fc.tuple(fc.constantFrom('pods', 'secrets', '*'), label);
  const action = fc.oneof(
    fc.record({ resource: fc.constant('roles'), namespace: name, name, more: fc.option(role) }),
    fc.record({ resource: fc.constant('clusterroles'), namespace: fc.constant(''), name, more: fc.option(role) }),
    fc.record({
      resource: fc.constantFrom('rolebindings', 'clusterrolebindings'),
      namespace: name,
      name,
      more: fc.option(fc.tuple(fc.array(subject, { maxLength: 4 }), fc.constantFrom('Role', 'ClusterRole'), name)),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 25 }), async (actions) => {
      const store = await newStore();
      const rbac = createRbac(store);
      await write(
        store,
        { resource: 'clusterroles', namespace: '', name: 'c' },
        { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { collect: 'me' } }] } },
      );
      for (const { resource, namespace: where, name: called, more } of actions) {
        const namespace = resource.startsWith('cluster') ? '' : where;
        const made = (): object | undefined => {
          if (!more) return undefined;
          if (more.length === 3) return { subjects: more[0], ...refTo(more[2], more[1]) };
          return { ...rules(more[0]), metadata: { name: called, ...(namespace && { namespace }), ...more[1] } };
        };
        await write(store, { resource, namespace, name: called }, made());
        const fresh = createRbac(store);
        for (const username of ['a', 'b', 'system:serviceaccount:a:b', 'system:serviceaccount:b:b']) {
          for (const asked of ['a', 'b', '']) {
            assert.deepEqual(
              rbac.authorize(user(username), { ...may, namespace: asked }),
              fresh.authorize(user(username), { ...may, namespace: asked }),
            );
          }
          assert.deepEqual(rbac.rulesFor(user(username), 'a'), fresh.rulesFor(user(username), 'a'));
        }
        fresh.stop();
      }
      rbac.stop();
      await store.close();
    }),
    { numRuns: 40 },
  );
});

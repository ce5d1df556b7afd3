/** Deletions and the writes that protect, one after the other, whatever is durable of them and what fails. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import type { ResourceInfo } from '../../../apimachinery/src/types/resource.ts';
import type { AdmissionAttributes, AdmissionOperation } from '../../../apiserver/src/admission/plugin.ts';
import { holdCommits, openStore, settle } from '../../../apiserver/src/cache/store.fixture.ts';
import { builtinResource } from '../../../apiserver/src/kinds/builtin/builtin-resources.ts';
import { createObject } from '../../../apiserver/src/registry/create.ts';
import { deleteObject } from '../../../apiserver/src/registry/delete.ts';
import { guaranteedUpdate } from '../../../apiserver/src/registry/guaranteed-update.ts';
import type { AdmissionHooks, WriteCall } from '../../../apiserver/src/registry/write-contract.ts';
import { createMemoryBackend } from '../../../apiserver/src/storage/memory-backend.ts';
import { kubevirtResources } from '../../../kubevirt/src/kinds/kubevirt.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createDeletionProtection } from './deletion-protection.ts';

const MACHINES = kubevirtResources().find(
  ({ resource, version }) => resource === 'virtualmachines' && version === 'v1',
)!;
const SECRETS = builtinResource({ group: '', version: 'v1', resource: 'secrets' })!;
const NAMESPACES = builtinResource({ group: '', version: 'v1', resource: 'namespaces' })!;
const LABEL = 'kubevirt.io/vm-delete-protection';
const USER = { username: 'somebody', groups: [] };

async function world() {
  const backend = holdCommits(createMemoryBackend());
  const clock = createFakeClock();
  const store = await openStore(backend, clock);
  const registry = { store, clock };
  const { plugin } = createDeletionProtection({ store, isComponent: () => false, evidence: { refused() {} } });
  /** `slow`: another plug-in behind this one takes until it resolves. */
  const hooks = (info: ResourceInfo, namespace: string, slow?: Promise<void>): AdmissionHooks => ({
    mutate: () => {},
    async validate(operation: AdmissionOperation, subject) {
      if (plugin.matches(operation, info, ''))
        await plugin.validate!({
          ...subject,
          operation,
          info,
          namespace,
          user: USER,
        } as unknown as AdmissionAttributes);
      await slow;
    },
  });
  const call = (info: ResourceInfo, name: string, slow?: Promise<void>): WriteCall => ({
    info,
    subresource: '',
    namespace: info.namespaced ? 'ns' : '',
    name,
    dryRun: false,
    manager: 'test',
    admission: hooks(info, info.namespaced ? 'ns' : '', slow),
    warn: () => {},
  });
  const create = (info: ResourceInfo, object: object, slow?: Promise<void>) =>
    createObject(registry, {
      ...call(info, '', slow),
      object: {
        apiVersion: info.group ? `${info.group}/${info.version}` : info.version,
        kind: info.kind,
        ...object,
      } as UnstructuredObject,
      trusted: true,
    });
  const label = (value: string | undefined, slow?: Promise<void>) =>
    guaranteedUpdate(registry, {
      ...call(MACHINES, 'vm', slow),
      pinned: false,
      patch: true,
      next: (now) => ({ ...now, metadata: { ...now.metadata, labels: value === undefined ? {} : { [LABEL]: value } } }),
    });
  const remove = (info: ResourceInfo, name: string, slow?: Promise<void>) =>
    deleteObject(registry, { ...call(info, name, slow), options: {} });
  const secret = { metadata: { name: 'part', namespace: 'ns' } };
  const vm = (labels: object) => ({
    metadata: { name: 'vm', namespace: 'ns', labels },
    spec: { template: { spec: { domain: { devices: {} }, volumes: [{ name: 'd', secret: { secretName: 'part' } }] } } },
  });
  const start = async (labels: object): Promise<void> => {
    await backend.letThrough();
    await create(NAMESPACES, { metadata: { name: 'ns' } });
    await create(SECRETS, secret);
    await create(MACHINES, vm(labels));
    backend.hold();
  };
  return { backend, store, create, vm, label, remove, start };
}
type World = Awaited<ReturnType<typeof world>>;

const isForbidden = { code: 403, message: /protected VirtualMachine ns\/vm/ };
/** Whether it has been answered yet. */
const state = async (answer: Promise<unknown>): Promise<string> => {
  await settle();
  return Promise.race([
    answer.then(
      () => 'done',
      () => 'refused',
    ),
    settle().then(() => 'waits'),
  ]);
};
const ready = async (labels: object): Promise<World> => {
  const made = await world();
  await made.start(labels);
  return made;
};
const ON = { [LABEL]: 'true' };

describe('a deletion and a write that protects, one after the other', () => {
  // S-705: A deletion and a write that protects a machine or has it refer to something are decided one after the other:
  //   the later one knows of the earlier, durable or not. A refusal that rests on a write under way is given when that
  //   is durable. In a namespace that goes nothing is protected any more.
  it('the label is decided first: the deletion waits until that is durable, and is refused', async () => {
    const { backend, label, remove } = await ready({});
    const labelled = label('true');
    await settle();
    const removed = remove(SECRETS, 'part');
    assert.equal(await state(removed), 'waits');
    await backend.release();
    await labelled;
    await assert.rejects(removed, isForbidden);
  });

  it('the label is decided first and fails: the deletion goes on', async () => {
    const { backend, store, label, remove } = await ready({});
    const labelled = label('true');
    labelled.catch(() => {});
    await settle();
    const removed = remove(SECRETS, 'part');
    assert.equal(await state(removed), 'waits');
    await backend.fail('no-space');
    await assert.rejects(labelled);
    await backend.letThrough();
    await removed;
    assert.equal(store.get({ prefix: '/secrets', namespace: 'ns', name: 'part' }), undefined);
  });

  it('the label comes off and is not durable yet: the deletion is refused, as it would be if that failed', async () => {
    const { backend, label, remove } = await ready(ON);
    const off = label(undefined);
    await settle();
    await assert.rejects(remove(SECRETS, 'part'), isForbidden);
    await backend.release();
    await off;
    const removed = remove(SECRETS, 'part');
    await settle();
    await backend.release();
    await removed;
  });

  // S-705
  it('the label comes while the deletion is admitted: it is refused when it is written', async () => {
    const { backend, label, remove } = await ready({});
    await backend.letThrough();
    const slow = Promise.withResolvers<void>();
    const removed = remove(SECRETS, 'part', slow.promise);
    await settle();
    await label('true');
    slow.resolve();
    await assert.rejects(removed, isForbidden);
  });

  it('the deletion is decided first: the label comes to a machine whose part is gone', async () => {
    const { backend, label, remove } = await ready({});
    const removed = remove(SECRETS, 'part');
    await settle();
    const labelled = label('true');
    await settle();
    await backend.letThrough();
    assert.equal((await removed).removed, true);
    await labelled;
  });

  // S-705
  it('a namespace whose deletion is decided takes no protected machine, one that is being admitted too', async () => {
    const { backend, create, vm, label, remove } = await ready({});
    await backend.letThrough();
    const slow = Promise.withResolvers<void>();
    const made = create(MACHINES, { ...vm(ON), metadata: { ...vm(ON).metadata, name: 'new' } }, slow.promise);
    const labelled = label('true', slow.promise);
    const labelledLater = labelled.catch((error: unknown) => error);
    const madeLater = made.catch((error: unknown) => error);
    await settle();
    await remove(NAMESPACES, 'ns');
    slow.resolve();
    for (const refused of [await labelledLater, await madeLater]) {
      assert.equal((refused as { code?: number }).code, 403);
      assert.match(String(refused), /namespace ns because it is being terminated/);
    }
  });

  it('a protected machine that is being made holds its namespace from its decision on', async () => {
    const { backend, create, vm, remove } = await ready({});
    const made = create(MACHINES, { ...vm(ON), metadata: { ...vm(ON).metadata, name: 'new' } });
    await settle();
    const removed = remove(NAMESPACES, 'ns');
    assert.equal(await state(removed), 'waits');
    await backend.release();
    await made;
    await assert.rejects(removed, { code: 403, message: /protected VirtualMachine ns\/new is in it/ });
  });
});

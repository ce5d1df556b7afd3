import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeObject } from '../../../../../apimachinery/src/meta/object.ts';
import { ApiError, notFound } from '../../../../../apimachinery/src/meta/status.ts';
import type { Client } from '../../../../../client/src/client.ts';
import type { VirtualMachine } from '../../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../../../rules/machine-defaults/cluster-config.ts';
import { mutateMatchers } from './instancetypes.ts';
import { admit } from './webhook-server.ts';

const SMALL = {
  apiVersion: 'instancetype.kubevirt.io/v1beta1',
  kind: 'VirtualMachineClusterInstancetype',
  metadata: { name: 'small', uid: 'type-uid', generation: 3 },
  spec: { cpu: { guest: 2 }, memory: { guest: '1Gi' } },
} as KubeObject;

/** A client over fixed objects; keeps what is created. A get of `broken` fails as a server that is not there. */
function clientOf(...objects: KubeObject[]) {
  const created: KubeObject[] = [];
  const client = {
    get: async (type: { kind: string; group: string; resource: string }, { name }: { name: string }) => {
      if (name === 'broken') throw new ApiError({ code: 503, message: 'away', reason: 'ServiceUnavailable' });
      const found = objects.find(({ kind, metadata }) => kind === type.kind && metadata.name === name);
      if (found === undefined) throw notFound(type, name);
      return found;
    },
    list: async () => ({ items: [] }),
    create: async (_type: unknown, object: KubeObject) => {
      created.push(object);
      return object;
    },
  } as unknown as Client;
  return { client, created };
}

const vm = (spec: object = {}, metadata: object = {}): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'vm', namespace: 'ns', uid: 'vm-uid', ...metadata },
    spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } }, ...spec },
  }) as unknown as VirtualMachine;

const ask = (path: string, object: KubeObject, { client, more = {} }: { client: Client; more?: object }) =>
  admit(
    path,
    { uid: 'r', operation: 'CREATE', namespace: 'ns', object, ...more },
    { client, config: () => clusterConfigOf(undefined), randomUuid: () => 'uuid', now: () => 0, presets: () => [] },
  );

describe('the webhooks over HTTP', () => {
  const named = { instancetype: { name: 'small' } };

  // S-1481: An update of a machine that leaves its spec alone has no preference or instance type looked up.
  it('look for nothing when the spec of a machine stays', async () => {
    const read: string[] = [];
    const client = {
      get: async (type: { group: string; resource: string }, { name }: { name: string }) => {
        read.push(name);
        throw notFound(type, name);
      },
    } as unknown as Client;
    const machine = vm({ preference: { name: 'linux' } });
    const update = async (old: VirtualMachine): Promise<void> => {
      const answer = await ask('/virtualmachines-mutate', machine, {
        client,
        more: { operation: 'UPDATE', oldObject: old },
      });
      assert.equal(answer.allowed, true);
    };
    await update({ ...machine, metadata: { ...machine.metadata, finalizers: ['example.org/held'] } });
    assert.deepEqual(read, []);
    await update(vm({ preference: { name: 'windows' } }));
    assert.deepEqual(read, ['linux']);
  });

  it('write the copy of an accepted machine, owned by it', async () => {
    const { client, created } = clientOf(SMALL);
    assert.equal((await ask('/virtualmachines-validate', vm(named), { client })).allowed, true);
    assert.equal(created.length, 1);
    assert.equal(created[0]!.metadata.name, 'vm-small-v1beta1-type-uid-3');
    assert.equal(created[0]!.metadata.ownerReferences?.[0]?.uid, 'vm-uid');
  });
  it('write none in a dry run, on update, or for a machine that is refused', async () => {
    const { client, created } = clientOf(SMALL);
    await ask('/virtualmachines-validate', vm(named), { client, more: { dryRun: true } });
    await ask('/virtualmachines-validate', vm(named), { client, more: { operation: 'UPDATE', oldObject: vm() } });
    const template = { spec: { domain: { devices: {}, memory: { guest: '1Gi' } } } };
    const refused = await ask('/virtualmachines-validate', vm({ ...named, template }), { client });
    assert.equal(refused.allowed, false);
    assert.equal(refused.status?.['code'], 422);
    assert.deepEqual(created, []);
  });
  it('refuse a matcher with causes, and what cannot be inferred with 400', async () => {
    const { client } = clientOf();
    const empty = await ask('/virtualmachines-mutate', vm({ preference: {} }), { client });
    assert.equal(empty.status?.['code'], 422);
    const inferred = await ask('/virtualmachines-mutate', vm({ preference: { inferFromVolume: 'no' } }), { client });
    assert.equal(inferred.status?.['code'], 400);
    assert.equal(inferred.status?.['message'], 'unable to find volume no to infer defaults');
  });
  it('let through what names something missing or unreadable', async () => {
    const { client } = clientOf();
    for (const name of ['missing', 'broken'])
      for (const path of ['/virtualmachines-mutate', '/virtualmachines-validate'])
        assert.equal((await ask(path, vm({ instancetype: { name }, preference: { name } }), { client })).allowed, true);
    const unknown = vm({ instancetype: { name: 'small', kind: 'Deployment' } });
    assert.equal((await ask('/virtualmachines-validate', unknown, { client })).allowed, true);
    const pinned = vm({ instancetype: { name: 'small', revisionName: 'missing' } });
    assert.equal((await ask('/virtualmachines-validate', pinned, { client })).allowed, true);
  });
});

describe('mutateMatchers()', () => {
  it('follows a volume to the DataSource of its template', async () => {
    const source = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: {
        name: 'fedora',
        namespace: 'ns',
        labels: {
          'instancetype.kubevirt.io/default-instancetype': 'small',
          'instancetype.kubevirt.io/default-preference': 'liked',
        },
      },
    } as KubeObject;
    const machine = vm({
      instancetype: { inferFromVolume: 'root' },
      preference: { inferFromVolume: 'root' },
      dataVolumeTemplates: [
        { metadata: { name: 'disk' }, spec: { sourceRef: { kind: 'DataSource', name: 'fedora' }, storage: {} } },
      ],
      template: { spec: { domain: { devices: {} }, volumes: [{ name: 'root', dataVolume: { name: 'disk' } }] } },
    });
    await mutateMatchers(machine, undefined, { client: clientOf(source).client, mayRead: async () => true });
    assert.deepEqual(machine.spec.instancetype, { name: 'small' });
    assert.deepEqual(machine.spec.preference, { name: 'liked' });
  });
});

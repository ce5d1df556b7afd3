/** Why a machine that is to run does not: said on the VirtualMachine itself, by its word and by a condition. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  ROLE_BINDINGS,
  ROLES,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { DATA_SOURCES, DATA_VOLUMES, type DataVolume } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { startFakeNode } from '../testkit/fake-node.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({ nodes: ['node-1'], components: 'vm,vmi,scheduler' });
  const playing = new AbortController();
  const { client: admin, board } = cluster;
  const client = board.plane.clientForNode('quiet');
  await startFakeNode({ name: 'quiet', client, admin, signal: playing.signal, labels: { quiet: 'true' } });
  playing.abort();
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

interface Case {
  readonly spec?: object;
  readonly template?: object;
  /** Beside its devices; absent = 64Mi of memory. */
  readonly domain?: object;
  /** Made before the machine. */
  readonly before?: (name: string) => Promise<unknown>;
  /** What an agent writes of its Pod. */
  readonly pod?: object;
  readonly status: string;
  readonly condition: readonly [type: string, status: string, reason: string, message: RegExp];
}

/** A node that takes Pods, and whose agent is silent: the test writes for it. */
const QUIET = { nodeSelector: { quiet: 'true' } };
const NOWHERE = { nodeSelector: { nowhere: 'true' } };
const waiting = (reason: string, message: string) => ({
  containerStatuses: [{ name: 'compute', state: { waiting: { reason, message } } }],
});
const claimVolume = (claimName: string) => ({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] });
const dataVolume = (name: string) => ({ volumes: [{ name: 'data', dataVolume: { name } }] });
const pendingClaim = (name: string) =>
  cluster.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'nobody', resources: { requests: { storage: '1Mi' } } },
  });

async function failedDataVolume(name: string): Promise<void> {
  await cluster.client.create(DATA_VOLUMES, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name, namespace: 'default' },
    spec: {
      source: { http: { url: 'http://images.invalid/a' } },
      storage: { resources: { requests: { storage: '1Mi' } } },
    },
  } as unknown as DataVolume);
  const conditions = [
    { type: 'Ready', status: 'False', reason: 'Error', message: '' },
    {
      type: 'Running',
      status: 'False',
      reason: 'Error',
      message: 'Unable to connect to http data source: no such host',
    },
  ];
  const body = { status: { phase: 'ImportInProgress', conditions } };
  await cluster.client.patch(
    DATA_VOLUMES,
    { namespace: 'default', name },
    { type: 'merge', body },
    { subresource: 'status' },
  );
}

const CASES: Readonly<Record<string, Case>> = {
  'no-node-fits': {
    template: NOWHERE,
    status: 'ErrorUnschedulable',
    condition: ['PodScheduled', 'False', 'Unschedulable', /^0\/2 nodes are available: 2 node/],
  },
  'no-claim': {
    template: claimVolume('none'),
    status: 'ErrorPvcNotFound',
    condition: ['Synchronized', 'False', 'FailedPvcNotFound', /^PVC default\/none does not exist, waiting/],
  },
  'unbound-claim': {
    before: pendingClaim,
    template: claimVolume('unbound-claim'),
    status: 'ErrorUnschedulable',
    condition: ['PodScheduled', 'False', 'Unschedulable', /unbound/],
  },
  'no-instancetype': {
    spec: { instancetype: { name: 'none' } },
    domain: {},
    status: 'Stopped',
    condition: ['Failure', 'True', 'FailedFindInstancetype', /"none" not found/],
  },
  'no-preference': {
    spec: { preference: { name: 'none' } },
    status: 'Stopped',
    condition: ['Failure', 'True', 'FailedFindPreference', /"none" not found/],
  },
  'no-image': {
    template: QUIET,
    pod: waiting('ErrImagePull', 'localhost/none: not here'),
    status: 'ErrImagePull',
    condition: ['Synchronized', 'False', 'ErrImagePull', /^localhost\/none: not here$/],
  },
  'no-image-yet': {
    template: QUIET,
    pod: waiting('ImagePullBackOff', 'localhost/none: not here'),
    status: 'ImagePullBackOff',
    condition: ['Synchronized', 'False', 'ImagePullBackOff', /^localhost\/none: not here$/],
  },
  'no-room': {
    template: QUIET,
    pod: waiting('FailedStart', 'no space left on the disk of the node'),
    status: 'Starting',
    condition: ['Synchronized', 'False', 'FailedStart', /^no space left on the disk of the node$/],
  },
  'no-mount': {
    template: QUIET,
    pod: waiting('FailedMount', 'configmap "none" not found'),
    status: 'Starting',
    condition: ['Synchronized', 'False', 'FailedMount', /^configmap "none" not found$/],
  },
  'no-source': {
    // Its claim is there before it is filled.
    before: async (name) => {
      await pendingClaim(name);
      await failedDataVolume(name);
    },
    template: dataVolume('no-source'),
    status: 'DataVolumeError',
    condition: ['DataVolumesReady', 'False', 'NotAllDVsReady', /^DataVolume no-source failed: Unable to connect/],
  },
  'no-source-of-template': {
    before: failedDataVolume,
    spec: {
      dataVolumeTemplates: [
        {
          metadata: { name: 'no-source-of-template' },
          spec: { source: { blank: {} }, storage: { resources: { requests: { storage: '1Mi' } } } },
        },
      ],
    },
    template: dataVolume('no-source-of-template'),
    status: 'DataVolumeError',
    condition: [
      'DataVolumesReady',
      'False',
      'NotAllDVsReady',
      /^DataVolume no-source-of-template failed: Unable to connect/,
    ],
  },
};

// S-1233: A machine that is to run and does not says why on itself: by `printableStatus` and a condition with reason and message.
for (const [name, one] of Object.entries(CASES))
  test(`a machine with ${name.replaceAll('-', ' ')} says so itself`, async () => {
    await one.before?.(name);
    await cluster.client.create(VIRTUAL_MACHINES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'default' },
      spec: {
        runStrategy: 'Always',
        template: {
          spec: { domain: { devices: {}, ...(one.domain ?? { memory: { guest: '64Mi' } }) }, ...one.template },
        },
        ...one.spec,
      },
    } as unknown as VirtualMachine);
    if (one.pod) {
      const [pod] = await eventually(`the Pod of ${name}`, async () => {
        const { items } = await cluster.client.list<Pod>(PODS, {
          namespace: 'default',
          labelSelector: `vmi.kubevirt.io/id=${name}`,
        });
        return items.length > 0 ? items : undefined;
      });
      const body = { status: { ...one.pod, conditions: [{ type: 'PodScheduled', status: 'True' }] } };
      await cluster.client.patch(
        PODS,
        { namespace: 'default', name: pod?.metadata.name ?? '' },
        { type: 'merge', body },
        { subresource: 'status' },
      );
    }
    const [type, status, reason, message] = one.condition;
    let last: VirtualMachine['status'];
    await eventually(`${name} tells`, async () => {
      last = (await cluster.client.get(VIRTUAL_MACHINES, { namespace: 'default', name })).status;
      const found = last?.conditions?.find((condition) => condition.type === type);
      const tells = last?.printableStatus === one.status && found?.status === status && found.reason === reason;
      return (tells && message.test(found.message ?? '')) || undefined;
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last)}`);
    });
  });

// S-1233
test('the condition goes when the disk is filled', async () => {
  const name = 'no-source-of-template';
  const body = { status: { phase: 'Succeeded', conditions: [] } };
  await cluster.client.patch(
    DATA_VOLUMES,
    { namespace: 'default', name },
    { type: 'merge', body },
    { subresource: 'status' },
  );
  // There is an instance now, and the condition is its: the claim is not there.
  await eventually('the trouble is gone', async () =>
    (await readiness(name)) === "False Not all of the VMI's DVs are ready" ? true : undefined,
  );
});

async function readiness(name: string): Promise<string> {
  const { status } = await cluster.client.get(VIRTUAL_MACHINES, { namespace: 'default', name });
  const found = status?.conditions?.find(({ type }) => type === 'DataVolumesReady');
  return `${found?.status} ${found?.message}`;
}

// S-1501: The instance of a machine says by `DataVolumesReady` whether the claims of all its DataVolumes are bound, and the
//   machine repeats it.
test('of two DataVolumes both must be ready', async () => {
  const { client } = cluster;
  const volumes = ['first', 'second'].map((name) => ({ name, dataVolume: { name } }));
  await client.create(VIRTUAL_MACHINES, machineOf('two-disks', { volumes }));
  const becomes = (text: string) =>
    eventually(text, async () => ((await readiness('two-disks')) === text ? true : undefined));
  await becomes("False Not all of the VMI's DVs are ready");
  for (const name of ['first', 'second']) {
    await pendingClaim(name);
    await becomes("False Not all of the VMI's DVs are ready");
    const key = { namespace: 'default', name };
    const body = { status: { phase: 'Bound' } };
    await client.patch(PERSISTENT_VOLUME_CLAIMS, key, { type: 'merge', body }, { subresource: 'status' });
  }
  await becomes("True All of the VMI's DVs are bound and not running");
});

const machineOf = (name: string, template: object, spec: object = {}): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec: {
      runStrategy: 'Always',
      template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, ...template } },
      ...spec,
    },
  }) as unknown as VirtualMachine;
const storage = { resources: { requests: { storage: '1Mi' } } };
const found = (name: string): Promise<DataVolume | undefined> =>
  cluster.client.get(DATA_VOLUMES, { namespace: 'default', name }).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });

// S-1502: A template's `sourceRef` becomes the source that its DataSource stands for when the DataVolume is made; a source that
//   is not there is reported on the machine.
test('a DataVolume of a template copies what its DataSource stands for', async () => {
  const { client } = cluster;
  await client.create(DATA_SOURCES, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataSource',
    metadata: { name: 'golden', namespace: 'default' },
    spec: { source: { pvc: { name: 'golden-disk', namespace: 'default' } } },
  });
  const dataVolumeTemplates = [
    { metadata: { name: 'by-name' }, spec: { sourceRef: { kind: 'DataSource', name: 'golden' }, storage } },
  ];
  await client.create(VIRTUAL_MACHINES, machineOf('by-name', dataVolume('by-name'), { dataVolumeTemplates }));
  const made = await eventually('the DataVolume', () => found('by-name'));
  assert.deepEqual(made.spec, { source: { pvc: { name: 'golden-disk', namespace: 'default' } }, storage });
  const event =
    'Warning SourcePVCNotAvailabe Source PVC golden-disk not available: Target PVC by-name will remain unpopulated until source is created';
  await eventually('the event', async () => (await cluster.events('by-name')).includes(event) || undefined);
});

// S-1503: Of a machine that names an account (a serviceAccount volume), DataVolumes are copied from another namespace only
//   where that account may copy there, or may create Pods there; until then the machine says what is missing.
test('the account that a machine names needs the right to copy', async () => {
  const { client } = cluster;
  const grant = async (name: string, rules: readonly object[]): Promise<void> => {
    const metadata = { name, namespace: 'gold' };
    const apiGroup = 'rbac.authorization.k8s.io';
    await client.create(ROLES, { apiVersion: `${apiGroup}/v1`, kind: 'Role', metadata, rules } as never);
    const subjects = [{ kind: 'ServiceAccount', name, namespace: 'default' }];
    const roleRef = { apiGroup, kind: 'Role', name };
    const binding = { apiVersion: `${apiGroup}/v1`, kind: 'RoleBinding', metadata, roleRef, subjects };
    await client.create(ROLE_BINDINGS, binding as never);
  };
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'gold' } });
  const copies = async (name: string, source: object): Promise<void> => {
    const volumes = [{ name: 'token', serviceAccount: { serviceAccountName: name } }, ...dataVolume(name).volumes];
    const dataVolumeTemplates = [{ metadata: { name }, spec: { source, storage } }];
    await client.create(VIRTUAL_MACHINES, machineOf(name, { volumes }, { dataVolumeTemplates }));
    await eventually(`${name} is refused`, async () => {
      const { status } = await client.get(VIRTUAL_MACHINES, { namespace: 'default', name });
      const failure = status?.conditions?.find(({ type }) => type === 'Failure');
      return (
        (failure?.reason === 'FailedCreate' &&
          failure.message?.endsWith(
            `User system:serviceaccount:default:${name} has insufficient permissions in clone source namespace gold`,
          )) ||
        undefined
      );
    });
    assert.equal(await found(name), undefined);
  };
  const create = (apiGroup: string, ...resources: string[]) => ({
    apiGroups: [apiGroup],
    resources,
    verbs: ['create'],
  });
  await copies('explicit', { pvc: { namespace: 'gold', name: 'disk' } });
  await copies('implicit', { snapshot: { namespace: 'gold', name: 'disk' } });
  await grant('explicit', [create('cdi.kubevirt.io', 'datavolumes/source')]);
  await grant('implicit', [create('', 'pods', 'pvcs')]);
  for (const name of ['explicit', 'implicit']) {
    await eventually(`${name} is copied`, () => found(name));
    await eventually('nothing fails any more', async () => {
      const { status } = await client.get(VIRTUAL_MACHINES, { namespace: 'default', name });
      return status?.conditions?.every(({ type }) => type !== 'Failure') || undefined;
    });
  }
});

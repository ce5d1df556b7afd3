/**
 * No deadlock: whatever a machine depends on is gone, its label can be changed by every way a client has, it can be
 * patched, stopped and restarted, and once it is unprotected it goes, also with its namespace and with finalizers on it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { DELETE_PROTECTION_LABEL } from '../../packages/kubevirt/src/rules/protection/delete-protection.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import type { Answer } from '../testkit/in-process-control-plane.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components:
      'vm,vmi,scheduler,snapshot,garbage-collector-controller,namespace-controller,serviceaccount-controller,persistentvolumeclaim-protection-controller',
  });
});
after(async () => {
  await cluster.stop();
  // What is being made while its namespace begins to go is refused, and tried again until the machine is seen to go.
  const others = cluster.errors.filter(({ fields }) => !String(fields['error']).includes('it is being terminated'));
  assert.deepEqual(others, [], 'every component had the rights it names');
});

const ask = (method: string, target: string, body?: unknown, type?: string): Promise<Answer> =>
  cluster.board.send(method, target, body, type);
const accepted = async (method: string, target: string, body?: unknown, type?: string): Promise<Any> => {
  const { status, json } = await ask(method, target, body, type);
  assert.ok(status < 300, `${method} ${target}: ${status} ${JSON.stringify(json)}`);
  return json;
};

const TYPES = '/apis/instancetype.kubevirt.io/v1beta1';
const machines = (namespace: string): string => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;
const instances = (namespace: string): string => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances`;
const revisions = (namespace: string): string => `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
const core = (namespace: string, resource: string): string => `/api/v1/namespaces/${namespace}/${resource}`;
const power = (namespace: string, name: string, action: string): string =>
  `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${name}/${action}`;
const label = (value: string | null): object => ({ metadata: { labels: { [DELETE_PROTECTION_LABEL]: value } } });
const LABEL_PATH = `/metadata/labels/${DELETE_PROTECTION_LABEL.replace('/', '~1')}`;

const DISK = { domain: { devices: {}, memory: { guest: '64Mi' } } };
const machine = (name: string, spec: object = {}, template: object = DISK): object => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, labels: { app: name } },
  spec: { runStrategy: 'Always', ...spec, template: { spec: template } },
});
const volume = (source: object): object => ({ ...DISK, volumes: [{ name: 'root', ...source }] });
const named = (name: string, more: object = {}): object => ({
  instancetype: { kind: 'VirtualMachineInstancetype', name, ...more },
});
const preferred = (name: string, more: object = {}): object => ({
  preference: { kind: 'VirtualMachinePreference', name, ...more },
});
const TYPED = { domain: { devices: {} } };

/** A dependent that is missing: how the machine comes to be without it. */
interface Row {
  readonly missing: string;
  /** Also tried in a namespace that goes: where admission looks at what is missing. */
  readonly goes?: true;
  /** The machine. */
  readonly spec?: object;
  readonly template?: object;
  /** What there is in its namespace before it. */
  readonly before?: (namespace: string) => Promise<unknown>;
  /** Takes the dependent away from the machine `vm`, which is not protected yet. */
  readonly take?: (namespace: string, vm: string) => Promise<unknown>;
}

const sources = async (namespace: string): Promise<void> => {
  const made = (kind: string, resource: string, spec: object): Promise<Any> =>
    accepted('POST', `${TYPES}/namespaces/${namespace}/${resource}`, {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind,
      metadata: { name: 'small' },
      spec,
    });
  await made('VirtualMachineInstancetype', 'virtualmachineinstancetypes', {
    cpu: { guest: 1 },
    memory: { guest: '64Mi' },
  });
  await made('VirtualMachinePreference', 'virtualmachinepreferences', { devices: { preferredDiskBus: 'virtio' } });
};
const captured = (namespace: string, vm: string, ref: 'instancetypeRef' | 'preferenceRef'): Promise<string> =>
  eventually(`${namespace}/${vm} has its ${ref}`, async () => {
    const { json } = await ask('GET', `${machines(namespace)}/${vm}`);
    return json.status?.[ref]?.controllerRevisionRef?.name as string | undefined;
  });
const takeCopy =
  (ref: 'instancetypeRef' | 'preferenceRef', withSource: boolean) =>
  async (namespace: string, vm: string): Promise<void> => {
    const name = await captured(namespace, vm, ref);
    const resource = ref === 'instancetypeRef' ? 'virtualmachineinstancetypes' : 'virtualmachinepreferences';
    if (withSource) await accepted('DELETE', `${TYPES}/namespaces/${namespace}/${resource}/small`);
    await accepted('DELETE', `${revisions(namespace)}/${name}`);
  };
const claim = (namespace: string, name: string): Promise<Any> =>
  accepted('POST', core(namespace, 'persistentvolumeclaims'), {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
  });

const ROWS: readonly Row[] = [
  { missing: 'nothing', goes: true },
  {
    missing: 'ControllerRevision of spec.instancetype.revisionName',
    goes: true,
    spec: named('small', { revisionName: 'gone' }),
    template: TYPED,
    before: sources,
  },
  {
    missing: 'ControllerRevision of spec.preference.revisionName',
    spec: preferred('small', { revisionName: 'gone' }),
    before: sources,
  },
  {
    missing: 'ControllerRevision of status.instancetypeRef, its source as it was',
    spec: named('small'),
    template: TYPED,
    before: sources,
    take: takeCopy('instancetypeRef', false),
  },
  {
    missing: 'ControllerRevision of status.instancetypeRef, and its source',
    spec: named('small'),
    template: TYPED,
    before: sources,
    take: takeCopy('instancetypeRef', true),
  },
  {
    missing: 'ControllerRevision of status.preferenceRef, and its source',
    spec: preferred('small'),
    before: sources,
    take: takeCopy('preferenceRef', true),
  },
  {
    missing: 'both ControllerRevisions, and their sources',
    goes: true,
    spec: { ...named('small'), ...preferred('small') },
    template: TYPED,
    before: sources,
    take: async (namespace, vm) => {
      await takeCopy('instancetypeRef', true)(namespace, vm);
      await takeCopy('preferenceRef', true)(namespace, vm);
    },
  },
  { missing: 'instance type that never was', goes: true, spec: named('nowhere'), template: TYPED },
  { missing: 'preference that never was', spec: preferred('nowhere') },
  {
    missing: 'PersistentVolumeClaim',
    template: volume({ persistentVolumeClaim: { claimName: 'root' } }),
    before: (namespace) => claim(namespace, 'root'),
    take: async (namespace, vm) => {
      // The claim is in use until the guest has ended.
      await accepted('PUT', power(namespace, vm, 'stop'), {});
      await accepted('DELETE', `${core(namespace, 'persistentvolumeclaims')}/root`);
    },
  },
  {
    missing: 'PersistentVolumeClaim from the beginning',
    template: volume({ persistentVolumeClaim: { claimName: 'root' } }),
  },
  { missing: 'DataVolume', template: volume({ dataVolume: { name: 'root' } }) },
  {
    missing: 'DataVolume of a template',
    spec: {
      dataVolumeTemplates: [
        {
          metadata: { name: 'root' },
          spec: { source: { blank: {} }, storage: { resources: { requests: { storage: '1Mi' } } } },
        },
      ],
    },
    template: volume({ dataVolume: { name: 'root' } }),
  },
  { missing: 'Secret of a volume', template: volume({ secret: { secretName: 'gone' } }) },
  { missing: 'Secret of cloud-init', template: volume({ cloudInitNoCloud: { secretRef: { name: 'gone' } } }) },
  {
    missing: 'Secret of access credentials',
    template: {
      ...volume({ cloudInitNoCloud: { userData: '#cloud-config' } }),
      accessCredentials: [
        { sshPublicKey: { source: { secret: { secretName: 'gone' } }, propagationMethod: { noCloud: {} } } },
      ],
    },
  },
  { missing: 'ConfigMap', template: volume({ configMap: { name: 'gone' } }) },
  {
    missing: 'backend storage',
    template: { domain: { devices: { tpm: { persistent: true } }, memory: { guest: '64Mi' } } },
    take: async (namespace, vm) => {
      const path = core(namespace, 'persistentvolumeclaims');
      const found = await eventually('its claim', async () => (await ask('GET', path)).json.items?.[0]);
      await accepted('PUT', power(namespace, vm, 'stop'), {});
      await accepted('DELETE', `${path}/${found.metadata.name}`);
    },
  },
  {
    missing: 'snapshot of a restore under way',
    goes: true,
    spec: { runStrategy: 'Halted' },
    take: async (namespace, vm) => {
      await accepted('POST', `/apis/snapshot.kubevirt.io/v1beta1/namespaces/${namespace}/virtualmachinerestores`, {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineRestore',
        metadata: { name: 'back' },
        spec: {
          target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: vm },
          virtualMachineSnapshotName: 'gone',
        },
      });
      await accepted('PATCH', `${machines(namespace)}/${vm}/status`, { status: { restoreInProgress: 'back' } }, MERGE);
    },
  },
];

const MERGE = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
const APPLY = 'application/apply-patch+yaml';

/** The ways in which a client sets the label; each is taken for on and off. */
const WAYS: readonly [what: string, set: (vm: string, value: string) => Promise<Any>][] = [
  ['kubectl label and kubectl patch: a merge patch', (vm, value) => accepted('PATCH', vm, label(value), MERGE)],
  [
    'kubectl patch --type=json',
    (vm, value) => accepted('PATCH', vm, [{ op: 'add', path: LABEL_PATH, value }], JSON_PATCH),
  ],
  [
    'kubectl apply --server-side',
    (vm, value) =>
      accepted(
        'PATCH',
        `${vm}?fieldManager=gitops&force=true`,
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          metadata: { labels: { [DELETE_PROTECTION_LABEL]: value } },
        },
        APPLY,
      ),
  ],
  [
    'kubectl edit and kubectl replace: an update',
    (vm, value) =>
      eventually('an update that nobody overtakes', async () => {
        const now = await accepted('GET', vm);
        now.metadata.labels[DELETE_PROTECTION_LABEL] = value;
        const { status, json } = await ask('PUT', vm, now);
        if (status === 409) return undefined;
        assert.equal(status, 200, JSON.stringify(json));
        return json;
      }),
  ],
];

const isProtected = async (vm: string): Promise<boolean> =>
  (await accepted('GET', vm)).metadata.labels?.[DELETE_PROTECTION_LABEL] === 'true';
const isGone = (path: string): Promise<unknown> =>
  eventually(`${path} is gone`, async () => (await ask('GET', path)).status === 404 || undefined);

/** A machine that lacks what the row says, in a namespace of its own. */
async function prepare(row: Row, namespace: string): Promise<string> {
  await accepted('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await eventually('its service account', async () => {
    const { status } = await ask('GET', `${core(namespace, 'serviceaccounts')}/default`);
    return status === 200 || undefined;
  });
  await row.before?.(namespace);
  await accepted('POST', machines(namespace), machine('vm', row.spec, row.template));
  await row.take?.(namespace, 'vm');
  return `${machines(namespace)}/vm`;
}

/** Everything a client may want of a protected machine but its deletion. */
async function walk(namespace: string, vm: string): Promise<void> {
  for (const [way, set] of WAYS) {
    await set(vm, 'true');
    assert.ok(await isProtected(vm), way);
    await set(vm, 'False');
    assert.ok(!(await isProtected(vm)), way);
  }
  await accepted('PATCH', vm, label('true'), MERGE);
  const template = { metadata: { annotations: { note: 'changed' } } };
  await accepted('PATCH', vm, { metadata: { annotations: { note: 'x' } }, spec: { template } }, MERGE);
  await accepted('PATCH', `${vm}/status`, { status: { ready: false } }, MERGE);

  await eventually('it is stopped', async () => {
    const { spec } = await accepted('GET', vm);
    if (spec.runStrategy === 'Halted') return true;
    return (await ask('PUT', power(namespace, 'vm', 'stop'), {})).status === 202 || undefined;
  });
  await isGone(`${instances(namespace)}/vm`);
  const start = await ask('PUT', power(namespace, 'vm', 'start'), {});
  assert.equal(start.status, 202, JSON.stringify(start.json));
  // Without an instance there is nothing to restart: upstream's conflict, not a refusal by what is missing.
  const restart = await ask('PUT', power(namespace, 'vm', 'restart'), {});
  assert.ok(restart.status === 202 || /is not running|does not support manual restart/.test(restart.json.message));
  await accepted('PATCH', vm, { spec: { runStrategy: 'Halted' } }, MERGE);
  await isGone(`${instances(namespace)}/vm`);
  assert.ok(await isProtected(vm));
}

const POLICIES = ['Background', 'Foreground', 'Orphan'];
const LIMIT = { concurrency: true, timeout: 600_000 };

describe('a machine that lacks what it depends on', LIMIT, () => {
  for (const [index, row] of ROWS.entries()) {
    const namespace = `row-${index}`;
    // S-771: Whatever a machine depends on is missing (revision, instance type, preference, claim, DataVolume, Secret,
    //   ConfigMap, backend storage, snapshot of a restore under way), its protection comes on and off by patch, apply
    //   and update, it is patched, stopped, started and, unprotected, deleted, also in a namespace that goes and with
    //   finalizers; so is one that became invalid.
    it(`${row.missing}: it is changed, stopped, unprotected and deleted`, async () => {
      const vm = await prepare(row, namespace);
      await walk(namespace, vm);
      await accepted('PATCH', vm, label(null), MERGE);
      await accepted('DELETE', vm, { propagationPolicy: POLICIES[index % POLICIES.length] });
      await isGone(vm);
    });

    if (row.goes !== true) continue;
    // S-771
    it(`${row.missing}: with a finalizer, in a namespace that goes, it can be changed and let go`, async () => {
      const vm = await prepare(row, `${namespace}-going`);
      const before = await accepted('GET', vm);
      const finalizers = [...(before.metadata.finalizers ?? []), 'example.com/hold'];
      await accepted('PATCH', vm, { metadata: { finalizers } }, MERGE);
      await accepted('DELETE', `/api/v1/namespaces/${namespace}-going`);
      await eventually('its deletion has begun', async () => {
        const { metadata } = await accepted('GET', vm);
        return metadata.deletionTimestamp;
      });
      await accepted('PATCH', vm, { metadata: { labels: { late: 'change' } } }, MERGE);
      await accepted('PATCH', vm, { spec: { runStrategy: 'Halted' } }, MERGE);
      await accepted('PATCH', vm, label('False'), MERGE);
      await eventually('its finalizer goes', async () => {
        const now = await accepted('GET', vm);
        now.metadata.finalizers = now.metadata.finalizers.filter((name: string) => name !== 'example.com/hold');
        const { status } = await ask('PUT', vm, now);
        return status === 200 || undefined;
      });
      await isGone(`/api/v1/namespaces/${namespace}-going`);
    });
  }
});

// S-771
it('a machine whose preference came back with other demands is not valid, and is stopped, unprotected and deleted', async () => {
  const namespace = 'demanding';
  const vm = await prepare({ missing: '', spec: preferred('small'), before: sources }, namespace);
  const { metadata, data } = await accepted(
    'GET',
    `${revisions(namespace)}/${await captured(namespace, 'vm', 'preferenceRef')}`,
  );
  await accepted('POST', revisions(namespace), {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: { name: 'other', labels: metadata.labels },
    data: { ...data, spec: { ...data.spec, requirements: { memory: { guest: '1Ti' } } } },
    revision: 0,
  });
  const status = { preferenceRef: { name: 'small', controllerRevisionRef: { name: 'other' } } };
  await accepted('PATCH', `${vm}/status`, { status }, MERGE);
  await accepted('PATCH', vm, label('true'), MERGE);
  const template = { metadata: { annotations: { note: 'changed' } } };
  const answer = await ask('PATCH', vm, { spec: { template } }, MERGE);
  assert.equal(answer.status, 422);
  assert.match(answer.json.message, /insufficient Memory resources/);
  await accepted('PUT', power(namespace, 'vm', 'stop'), {});
  await isGone(`${instances(namespace)}/vm`);
  await accepted('PATCH', vm, label('False'), MERGE);
  await accepted('DELETE', vm);
  await isGone(vm);
});

describe('a machine whose ControllerRevision is gone starts again', LIMIT, () => {
  const small = (guest: string): object => ({ cpu: { guest: 1 }, memory: { guest } });
  const type = (namespace: string): string => `${TYPES}/namespaces/${namespace}/virtualmachineinstancetypes`;
  const started = (namespace: string): Promise<Any> =>
    eventually('it starts', async () => {
      const { status, json } = await ask('GET', `${instances(namespace)}/vm`);
      return status === 200 && json;
    });
  /** The copy that is gone, of a machine that is protected; its source is another by now, so that nothing comes back by itself. */
  const lost = async (namespace: string): Promise<[vm: string, copy: Any]> => {
    await accepted('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    await sources(namespace);
    await accepted('POST', machines(namespace), machine('vm', { ...named('small'), runStrategy: 'Halted' }, TYPED));
    const vm = `${machines(namespace)}/vm`;
    const copy = await accepted('GET', `${revisions(namespace)}/${await captured(namespace, 'vm', 'instancetypeRef')}`);
    await accepted('PATCH', `${type(namespace)}/small`, { spec: small('96Mi') }, MERGE);
    await accepted('DELETE', `${revisions(namespace)}/${copy.metadata.name}`);
    await accepted('PATCH', vm, { ...label('true'), spec: { runStrategy: 'Always' } }, MERGE);
    await eventually('it says what is missing', async () => {
      const { status } = await accepted('GET', vm);
      return status.conditions.some(
        ({ type, reason }: Any) => type === 'Failure' && reason === 'FailedFindInstancetype',
      );
    });
    assert.equal(
      (await ask('GET', `${instances(namespace)}/vm`)).status,
      404,
      'never with other data than the captured',
    );
    return [vm, copy];
  };
  const WAYS_OUT: readonly [
    what: string,
    guest: string,
    go: (namespace: string, vm: string, copy: Any) => Promise<Any>,
  ][] = [
    [
      'the revision is made again under its name',
      '64Mi',
      (namespace, _vm, { apiVersion, kind, metadata, data, revision }) => {
        const { name, labels, ownerReferences } = metadata;
        return accepted('POST', revisions(namespace), {
          apiVersion,
          kind,
          metadata: { name, labels, ownerReferences },
          data,
          revision,
        });
      },
    ],
    [
      'spec.instancetype.revisionName names another that is there',
      '64Mi',
      async (namespace, vm, { apiVersion, kind, metadata, data, revision }) => {
        const { labels } = metadata;
        await accepted('POST', revisions(namespace), {
          apiVersion,
          kind,
          metadata: { name: 'saved', labels },
          data,
          revision,
        });
        return accepted('PATCH', vm, { spec: { instancetype: { revisionName: 'saved' } } }, MERGE);
      },
    ],
    [
      'the reference is taken out of the status',
      '96Mi',
      (_namespace, vm) => accepted('PATCH', `${vm}/status`, { status: { instancetypeRef: null } }, MERGE),
    ],
    [
      'spec.instancetype.name points elsewhere',
      '128Mi',
      async (namespace, vm) => {
        await accepted('POST', type(namespace), {
          apiVersion: 'instancetype.kubevirt.io/v1beta1',
          kind: 'VirtualMachineInstancetype',
          metadata: { name: 'large' },
          spec: small('128Mi'),
        });
        return accepted('PATCH', vm, { spec: { instancetype: { name: 'large' } } }, MERGE);
      },
    ],
  ];
  for (const [index, [what, guest, go]] of WAYS_OUT.entries()) {
    // S-772: A protected machine whose ControllerRevision is gone starts again: by itself while the source is what was
    //   captured, else when the revision is made again, another is named, or the reference is cleared or points
    //   elsewhere; never with other data than was captured.
    it(`when ${what}`, async () => {
      const namespace = `out-${index}`;
      const [vm, copy] = await lost(namespace);
      await go(namespace, vm, copy);
      const { spec } = await started(namespace);
      assert.equal(spec.domain.memory.guest, guest);
      assert.ok(await isProtected(vm));
    });
  }

  // S-772
  it('by itself, while the source is what was captured', async () => {
    const namespace = 'out-alone';
    await accepted('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    await sources(namespace);
    await accepted('POST', machines(namespace), machine('vm', { ...named('small'), runStrategy: 'Halted' }, TYPED));
    const path = `${revisions(namespace)}/${await captured(namespace, 'vm', 'instancetypeRef')}`;
    const { metadata, data } = await accepted('GET', path);
    await accepted('DELETE', path);
    const again = await eventually('it is there again', async () => {
      const { status, json } = await ask('GET', path);
      return status === 200 && json;
    });
    assert.notEqual(again.metadata.uid, metadata.uid);
    assert.deepEqual(again.data.spec, data.spec);
  });
});

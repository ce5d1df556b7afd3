import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { launcherAffinity, launcherNodeSelector, type NodeSelectorOptions } from './node-selector.ts';

const vmi = (spec: object, status?: object): VirtualMachineInstance =>
  ({ metadata: { name: 'a' }, spec: { domain: {}, ...spec }, ...(status && { status }) }) as VirtualMachineInstance;

const on = { enabled: true };
const cases: readonly {
  readonly what: string;
  readonly spec: object;
  readonly status?: object;
  readonly options?: NodeSelectorOptions;
  /** Beside kubevirt.io/schedulable. */
  readonly labels: Readonly<Record<string, string>>;
}[] = [
  { what: 'nothing', spec: {}, labels: {} },
  {
    what: "cluster's labels give way to the instance's",
    spec: { architecture: 'AMD64', nodeSelector: { zone: 'a' } },
    options: { nodeSelectors: { zone: 'b', pool: 'vms' } },
    labels: { 'kubernetes.io/arch': 'amd64', zone: 'a', pool: 'vms' },
  },
  {
    what: 'machine type as asked for',
    spec: { domain: { machine: { type: 'q35' } } },
    labels: { 'machine-type.node.kubevirt.io/q35': 'true' },
  },
  {
    what: 'machine type as it runs',
    spec: { domain: { machine: { type: 'q35' } } },
    status: { machine: { type: 'pc-q35-7.2' } },
    labels: { 'machine-type.node.kubevirt.io/pc-q35-7.2': 'true' },
  },
  {
    what: 'a TPM',
    spec: { domain: { devices: { tpm: {} } } },
    labels: { 'coracle.dev/tpm': 'true' },
  },
  { what: 'a TPM that is off', spec: { domain: { devices: { tpm: { enabled: false } } } }, labels: {} },
  {
    what: 'model, and features that are required',
    spec: {
      domain: {
        cpu: {
          model: 'Haswell',
          features: [
            { name: 'aes' },
            { name: 'avx', policy: 'require' },
            { name: 'vmx', policy: 'optional' },
            { name: 'svm', policy: 'forbid' },
          ],
        },
      },
    },
    labels: {
      'cpu-model.node.kubevirt.io/Haswell': 'true',
      'cpu-feature.node.kubevirt.io/aes': 'true',
      'cpu-feature.node.kubevirt.io/avx': 'true',
    },
  },
  {
    what: 'host-model is no label',
    spec: { domain: { cpu: { model: 'host-model', features: [{ name: 'aes' }] } } },
    labels: { 'cpu-feature.node.kubevirt.io/aes': 'true' },
  },
  { what: 'features without a model', spec: { domain: { cpu: { features: [{ name: 'aes' }] } } }, labels: {} },
  {
    what: 'dedicated and real-time processors',
    spec: { domain: { cpu: { dedicatedCpuPlacement: true, realtime: {} } } },
    labels: { 'kubevirt.io/cpumanager': 'true', 'kubevirt.io/realtime': 'true' },
  },
  {
    what: 'Hyper-V only where the cluster is strict',
    spec: { domain: { features: { hyperv: { vpindex: on } } } },
    labels: {},
  },
  {
    what: 'Hyper-V of the kernel, not of QEMU',
    spec: {
      domain: {
        features: {
          hyperv: { vpindex: on, synictimer: on, tlbflush: on, relaxed: on, ipi: { enabled: false }, evmcs: {} },
        },
      },
    },
    options: { hypervStrictCheck: true },
    labels: {
      'hyperv.node.kubevirt.io/vpindex': 'true',
      'hyperv.node.kubevirt.io/synictimer': 'true',
      'hyperv.node.kubevirt.io/tlbflush': 'true',
      'cpu-vendor.node.kubevirt.io/Intel': 'true',
    },
  },
  {
    what: 'TSC frequency where the guest relies on it',
    spec: { domain: { features: { hyperv: { reenlightenment: on } } } },
    status: { topologyHints: { tscFrequency: 2400000000 } },
    labels: { 'scheduling.node.kubevirt.io/tsc-frequency-2400000000': 'true' },
  },
  { what: 'TSC hint that nobody needs', spec: {}, status: { topologyHints: { tscFrequency: 1 } }, labels: {} },
  {
    what: 'SEV-ES',
    spec: { domain: { launchSecurity: { sev: { policy: { encryptedState: true } } } } },
    labels: { 'kubevirt.io/sev': 'true', 'kubevirt.io/sev-es': 'true' },
  },
  {
    what: 'SEV-SNP',
    spec: { domain: { launchSecurity: { snp: {} } } },
    labels: { 'kubevirt.io/sev-snp': 'true' },
  },
  { what: 'TDX', spec: { domain: { launchSecurity: { tdx: {} } } }, labels: { 'kubevirt.io/tdx': 'true' } },
  {
    what: 'Secure Execution',
    spec: { architecture: 's390x', domain: { launchSecurity: {} } },
    labels: { 'kubernetes.io/arch': 's390x', 'kubevirt.io/secure-execution': 'true' },
  },
];

// S-219: A launcher asks for nodes that have what its machine needs, and a node tells what it has.
test('launcherNodeSelector() names what a node must have', async (t) => {
  for (const { what, spec, status, options = {}, labels } of cases)
    await t.test(what, () =>
      assert.deepEqual(launcherNodeSelector(vmi(spec, status), options), {
        'kubevirt.io/schedulable': 'true',
        ...labels,
      }),
    );
});

// S-219
test('launcherAffinity() keeps guests away from features they forbid, in each alternative', () => {
  const cpu = { features: [{ name: 'svm', policy: 'forbid' }, { name: 'aes' }] };
  const away = { key: 'cpu-feature.node.kubevirt.io/svm', operator: 'DoesNotExist' };
  const affinity = (spec: object) => launcherAffinity(vmi(spec).spec);
  assert.equal(affinity({ domain: { cpu: { features: [{ name: 'aes' }] } } }), undefined);
  const terms = (nodeSelectorTerms: object[]) => ({
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
  });
  assert.deepEqual(affinity({ domain: { cpu } }), { nodeAffinity: terms([{ matchExpressions: [away] }]) });
  const zone = (value: string) => ({ key: 'zone', operator: 'In', values: [value] });
  const field = { key: 'metadata.name', operator: 'In', values: ['n'] };
  const preferred = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: {} }] };
  assert.deepEqual(
    affinity({
      domain: { cpu },
      affinity: {
        podAffinity: {},
        nodeAffinity: {
          ...preferred,
          ...terms([{ matchExpressions: [zone('a')] }, { matchFields: [field] }]),
        },
      },
    }),
    {
      podAffinity: {},
      nodeAffinity: {
        ...preferred,
        ...terms([{ matchExpressions: [zone('a'), away] }, { matchFields: [field], matchExpressions: [away] }]),
      },
    },
  );
});

test('launcherAffinity() leads a guest to its saved memory: it must go there, or had better', () => {
  const place = { key: 'topology.coracle.dev/pool', value: 'p', isRequired: true };
  const there = { key: 'topology.coracle.dev/pool', operator: 'In', values: ['p'] };
  const zone = { key: 'zone', operator: 'In', values: ['a'] };
  const own = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [zone] }] },
    },
  };
  const affinity = (spec: object, isRequired: boolean) => launcherAffinity(vmi(spec).spec, { ...place, isRequired });
  assert.deepEqual(affinity({ affinity: own }, true)?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution, {
    nodeSelectorTerms: [{ matchExpressions: [zone, there] }],
  });
  const preferred = { weight: 100, preference: { matchExpressions: [there] } };
  assert.deepEqual(affinity({ affinity: own }, false), {
    nodeAffinity: { ...own.nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution: [preferred] },
  });
  assert.deepEqual(affinity({}, false), {
    nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [preferred] },
  });
});

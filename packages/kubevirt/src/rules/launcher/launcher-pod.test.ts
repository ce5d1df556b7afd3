import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { vmiIdLabel } from './launcher-labels.ts';
import { launcherPod } from './launcher-pod.ts';
import { launcherResources } from './launcher-resources.ts';

const instance = (spec: object = {}): VirtualMachineInstance =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: 'a',
      namespace: 'ns',
      uid: 'u',
      labels: { app: 'x' },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', keep: 'me' },
    },
    spec: { domain: { memory: { guest: '128Mi' }, cpu: { sockets: 2, cores: 1, threads: 1 } }, ...spec },
  }) as unknown as VirtualMachineInstance;

// S-045: The launcher Pod has upstream's labels, owner, grace padding and resources.
test('launcherPod() carries upstream labels, owner and grace padding', () => {
  const made = launcherPod(
    instance({
      terminationGracePeriodSeconds: 5,
      volumes: [{ name: 'root', containerDisk: { image: 'i' } }],
      architecture: 'amd64',
    }),
    {
      idLabel: 'a',
      cpuAllocationRatio: 10,
      useEmulation: true,
      launcherImage: 'l',
    },
  );
  assert.deepEqual(made.metadata.labels, {
    app: 'x',
    'kubevirt.io': 'virt-launcher',
    'kubevirt.io/created-by': 'u',
    'vmi.kubevirt.io/id': 'a',
    'vm.kubevirt.io/name': 'a',
  });
  assert.equal(made.metadata.annotations?.['kubectl.kubernetes.io/last-applied-configuration'], undefined);
  assert.equal(made.metadata.annotations?.['keep'], 'me');
  assert.equal(made.metadata.generateName, 'virt-launcher-a-');
  assert.equal(made.metadata.ownerReferences?.[0]?.kind, 'VirtualMachineInstance');
  assert.equal(made.spec.terminationGracePeriodSeconds, 35);
  assert.deepEqual(made.spec.readinessGates, [{ conditionType: 'kubevirt.io/virtual-machine-unpaused' }]);
  assert.deepEqual(
    made.spec.containers.map((c) => c.name),
    ['compute', 'volumeroot'],
  );
  assert.deepEqual(made.spec.nodeSelector, { 'kubevirt.io/schedulable': 'true', 'kubernetes.io/arch': 'amd64' });
});

// S-1546: The launcher Pod has the name servers and the DNS policy of its instance.
test('launcherPod() says who is asked for names, where the instance does', () => {
  const options = { idLabel: 'a', cpuAllocationRatio: 10, useEmulation: true, launcherImage: 'l' };
  const dns = { dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'], searches: ['example.com'] } };
  const { spec } = launcherPod(instance(dns), options);
  assert.deepEqual({ dnsPolicy: spec.dnsPolicy, dnsConfig: spec.dnsConfig }, dns);
  assert.equal(launcherPod(instance({}), options).spec.dnsPolicy, undefined);
});

test('launcherPod() names the ports of all interfaces, which Services point at by name', () => {
  const portsOf = (interfaces: readonly object[]) =>
    launcherPod(instance({ domain: { devices: { interfaces } } }), {
      idLabel: 'a',
      cpuAllocationRatio: 10,
      useEmulation: true,
      launcherImage: 'l',
    }).spec.containers[0]?.ports;
  assert.deepEqual(
    portsOf([
      {
        name: 'default',
        ports: [
          { name: 'http', port: 80 },
          { port: 53, protocol: 'UDP' },
        ],
      },
      { name: 'other', ports: [{ name: 'ssh', port: 22, protocol: 'TCP' }] },
    ]),
    [
      { name: 'http', containerPort: 80, protocol: 'TCP' },
      { containerPort: 53, protocol: 'UDP' },
      { name: 'ssh', containerPort: 22, protocol: 'TCP' },
    ],
  );
  assert.equal(portsOf([{ name: 'default' }]), undefined);
});

test('launcherPod() has the sidecar of the serial log unless instance or cluster say no', () => {
  const sidecar = (devices: object, serialConsoleLog?: boolean) =>
    launcherPod(instance({ domain: { devices } }), {
      idLabel: 'a',
      cpuAllocationRatio: 10,
      useEmulation: true,
      launcherImage: 'l',
      ...(serialConsoleLog !== undefined && { serialConsoleLog }),
    }).spec.initContainers?.map(({ name, restartPolicy, image }) => [name, restartPolicy, image]);
  const there = [['guest-console-log', 'Always', 'l']];
  assert.deepEqual(sidecar({}), there);
  assert.deepEqual(sidecar({}, true), there);
  assert.deepEqual(sidecar({}, false), undefined);
  assert.deepEqual(sidecar({ logSerialConsole: true }, false), there);
  assert.deepEqual(sidecar({ logSerialConsole: false }), undefined);
  assert.deepEqual(sidecar({ autoattachSerialConsole: false, logSerialConsole: true }), undefined);
});

// S-045
test('launcherResources() shares cores, adds overhead, asks for kvm only where it is used', () => {
  const spec = instance().spec;
  const emulated = launcherResources(spec, { cpuAllocationRatio: 10, useEmulation: true });
  assert.equal(emulated.requests['cpu'], '200m');
  assert.equal(emulated.requests['devices.kubevirt.io/kvm'], undefined);
  assert.equal(
    launcherResources(spec, { cpuAllocationRatio: 10, useEmulation: false }).limits['devices.kubevirt.io/kvm'],
    '1',
  );
  const overcommitted = {
    ...spec,
    domain: { ...spec.domain, resources: { overcommitGuestOverhead: true } },
  } as typeof spec;
  assert.equal(
    launcherResources(overcommitted, { cpuAllocationRatio: 10, useEmulation: true }).requests['memory'],
    '128Mi',
  );
});

test('vmiIdLabel() keeps short names and shortens long ones by a stable digest', async () => {
  assert.equal(await vmiIdLabel('a'.repeat(63)), 'a'.repeat(63));
  const long = await vmiIdLabel('a'.repeat(64));
  assert.match(long, /^a{54}-[0-9a-f]{8}$/);
  assert.notEqual(long, await vmiIdLabel('a'.repeat(65)));
});

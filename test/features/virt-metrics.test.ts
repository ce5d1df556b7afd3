/** KubeVirt's names on `/metrics`: what the page says is served is, and nothing else. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kinds.ts';
import { guestMetrics } from '../../packages/node-agent/src/agent/guest/guest-metrics.ts';
import { streamMetrics } from '../../packages/node-agent/src/agent/migration/stream-stats.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { partly } from '../testkit/partly.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster();
});
after(() => cluster.stop());

const page = readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8');
/** Names in the first columns of a section's table. */
const namesIn = (section: string): string[] =>
  (page.split(`## ${section}\n`)[1]?.split('\n## ')[0] ?? '')
    .split('\n')
    .flatMap((line) => [...(/^\|([^|]*)\|/.exec(line)?.[1] ?? '').matchAll(/`(kubevirt_\w+)`/g)])
    .map(([, name]) => name ?? '')
    .sort();
const textOfMetrics = async (): Promise<string> => String(await cluster.client.raw('GET', '/metrics'));

// S-1305: `/metrics` has KubeVirt's names for machines, instances, migrations, snapshots and streams, read off the objects, with
//   upstream's labels and types; the page of metrics names each, and why others are not there.
// Compat KubeVirt's API, P2, yes: metric names of machines, instances and guests, with upstream's labels and types
test('the names of objects, of a machine that runs and has moved through its phases', async () => {
  const vm = partly<VirtualMachine>({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'seen', namespace: 'default', labels: { tier: 'front' } },
    spec: {
      runStrategy: 'Always',
      template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } },
    },
  });
  await cluster.client.create(VIRTUAL_MACHINES, vm);
  const key = { namespace: 'default', name: 'seen' };
  await eventually('it runs', async () => {
    const vm = await cluster.client.get(VIRTUAL_MACHINES, key);
    return vm.status?.printableStatus === 'Running';
  });
  const text = await textOfMetrics();
  const line = (start: string) => text.split('\n').find((one) => one.startsWith(start)) ?? start;
  assert.match(line('kubevirt_vm_info{name="seen"'), /status="running",status_group="running"\} 1$/);
  assert.match(line('kubevirt_vm_labels{name="seen"'), /label_tier="front"\} 1$/);
  assert.match(line('kubevirt_vm_running_status_last_transition_timestamp_seconds{name="seen"'), / 1\d{9}$/);
  const vmi = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key);
  assert.match(
    line(`kubevirt_vmi_info{node="${vmi.status?.nodeName}"`),
    /phase="running".*vmi_pod="virt-launcher-seen-/,
  );
  assert.match(
    line('kubevirt_vmi_phase_transition_time_from_creation_seconds_count{phase="Scheduling"}'),
    / [1-9]\d*$/,
  );
  const served = [...text.matchAll(/^# TYPE (kubevirt_\w+) /gm)].map(([, name]) => name ?? '').sort();
  assert.deepEqual(served, namesIn('Of objects'));
});

test('the names of guests are those of the page', () => {
  const names = [...guestMetrics([]), ...streamMetrics([])].map(({ name }) => name).sort();
  assert.deepEqual(names, namesIn('Of guests'));
});

/**
 * Measures the expansion of a virtual machine against a captured instance type and preference (u1.medium and fedora):
 * prints one JSON line, microseconds. Usage: node bench/expand.ts [iterations]
 */
import type { InstancetypeSpec, PreferenceSpec, VirtualMachine } from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { commonInstancetypes } from '../packages/kubevirt/src/rules/instancetype/bundle/bundle.ts';
import { decodeRevision } from '../packages/kubevirt/src/rules/instancetype/decode-revision.ts';
import { applyInstancetype, expandVirtualMachine } from '../packages/kubevirt/src/rules/instancetype/expand.ts';
import { buildRevision } from '../packages/kubevirt/src/rules/instancetype/revision.ts';
import { clusterConfigOf } from '../packages/kubevirt/src/rules/machine-defaults/cluster-config.ts';
import { systemClock } from '../packages/runtime/src/clock/clock.ts';

/** The mean that one expansion may take. */
const TARGET_MICROSECONDS = 30;
const iterations = Number(process.argv[2] ?? 50_000);
const BATCHES = 20;

const vm: VirtualMachine = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'default', uid: 'u', labels: { app: 'bench' } },
  spec: {
    runStrategy: 'Always',
    instancetype: { name: 'u1.medium' },
    preference: { name: 'fedora' },
    template: {
      metadata: { labels: { app: 'bench' } },
      spec: {
        domain: { devices: {} },
        volumes: [
          { name: 'root', containerDisk: { image: 'quay.io/containerdisks/fedora:42' } },
          { name: 'init', cloudInitNoCloud: { userData: '#cloud-config\npassword: fedora\n' } },
        ],
      },
    },
  },
};
const objects = commonInstancetypes();
const captured = (name: string) => buildRevision(vm, objects.find(({ metadata }) => metadata.name === name)!);
const [type, preference] = [captured('u1.medium'), captured('fedora')];
const decodeLayers = () => ({
  instancetype: decodeRevision(type).spec as InstancetypeSpec,
  preference: decodeRevision(preference).spec as PreferenceSpec,
});
const layers = decodeLayers();
const config = clusterConfigOf(undefined);

function measure(run: () => unknown): { mean: number; bestBatch: number; worstBatch: number } {
  for (let i = 0; i < 5000; i++) run();
  const each = Math.max(1, Math.floor(iterations / BATCHES));
  const batches = Array.from({ length: BATCHES }, () => {
    const began = systemClock.monotonic();
    for (let i = 0; i < each; i++) run();
    return ((systemClock.monotonic() - began) / each) * 1000;
  });
  const round = (value: number): number => Math.round(value * 100) / 100;
  return {
    mean: round(batches.reduce((sum, batch) => sum + batch, 0) / BATCHES),
    bestBatch: round(Math.min(...batches)),
    worstBatch: round(Math.max(...batches)),
  };
}

const expand = measure(() => expandVirtualMachine(vm, layers, config));
console.log(
  JSON.stringify({
    expand,
    decodeAndExpand: measure(() => expandVirtualMachine(vm, decodeLayers(), config)),
    applyOnly: measure(() => applyInstancetype({ ...layers, spec: vm.spec.template.spec! })),
    target: TARGET_MICROSECONDS,
    met: expand.mean < TARGET_MICROSECONDS,
  }),
);

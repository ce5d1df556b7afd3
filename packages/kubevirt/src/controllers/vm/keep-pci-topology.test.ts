import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReadonlyVmi, VirtualMachine } from '../../kinds/kubevirt.ts';
import { keepPciTopology } from './keep-pci-topology.ts';

const VERSION = 'kubevirt.io/pci-topology-version';
const SLOTS = 'kubevirt.io/pci-interface-slot-count';
type Annotations = Record<string, string>;

describe('keepPciTopology()', () => {
  const cases: [name: string, instance: Annotations | undefined, template: object, expected: object][] = [
    ['nothing is known of the instance', undefined, {}, {}],
    ['a count without a version says nothing', { [SLOTS]: '8' }, {}, {}],
    [
      'the template has said its own',
      { [VERSION]: 'v2', [SLOTS]: '8' },
      { metadata: { annotations: { [VERSION]: 'v3' } } },
      { metadata: { annotations: { [VERSION]: 'v3' } } },
    ],
    [
      'a template without metadata',
      { [VERSION]: 'v3', a: 'b' },
      {},
      { metadata: { annotations: { [VERSION]: 'v3' } } },
    ],
    [
      'version and count, beside what is there',
      { [VERSION]: 'v2', [SLOTS]: '11' },
      { metadata: { labels: { l: 'm' }, annotations: { a: 'b' } } },
      { metadata: { labels: { l: 'm' }, annotations: { a: 'b', [VERSION]: 'v2', [SLOTS]: '11' } } },
    ],
  ];
  for (const [name, annotations, template, expected] of cases) {
    it(name, () => {
      const vm = { metadata: {}, spec: { template } } as VirtualMachine;
      keepPciTopology(vm, { metadata: { ...(annotations && { annotations }) } } as ReadonlyVmi);
      assert.deepEqual(vm.spec.template, expected);
    });
  }
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Part, partly } from '../../../../../test/testkit/partly.ts';
import type { Schema } from '../../../../apimachinery/src/schema/schema.ts';
import type { VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { kubevirtResources } from '../../kinds/kubevirt.ts';
import { REFUSED_VOLUMES, SERVED, UNSERVED, unservedFields } from './unserved-fields.ts';

type Spec = VirtualMachineInstanceSpec;

/** Every path of a spec that has nothing below it. */
function leavesOf(schema: Schema | undefined, path: string): string[] {
  if (schema?.items) return leavesOf(schema.items, `${path}[]`);
  const members = Object.entries(schema?.properties ?? {});
  return members.length === 0 ? [path] : members.flatMap(([name, below]) => leavesOf(below, join(path, name)));
}
const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
const isBelow = (leaf: string, path: string): boolean =>
  leaf === path || leaf.startsWith(`${path}.`) || leaf.startsWith(`${path}[]`);

// S-1293: No field of an instance's spec is ignored in silence: each is served, refused at admission, or reported at
//   once by a warning of the API and an event of the machine.
// Compat KubeVirt's API, P1, yes: fields of instances: served, refused, or warned about on the machine
describe('every field of an instance', () => {
  const spec = kubevirtResources().find(({ kind }) => kind === 'VirtualMachineInstance')?.schema.properties?.['spec'];
  const leaves = leavesOf(spec, '').map((leaf) => leaf.replace(/\[\]$/, ''));
  const served = Object.entries(SERVED).flatMap(([path, names]) => names.split(' ').map((name) => join(path, name)));
  const refused = Object.keys(REFUSED_VOLUMES).map((kind) => `volumes[].${kind}`);
  const places = [...Object.keys(UNSERVED), ...refused, ...served];
  const isAt = (leaf: string, place: string): boolean =>
    place.endsWith('.*') || !served.includes(place) ? isBelow(leaf, place.replace(/\.\*$/, '')) : leaf === place;
  it('has one place in the table', () => {
    assert.ok(leaves.length > 300, `${leaves.length} fields`);
    assert.deepEqual(
      leaves.filter((leaf) => places.filter((place) => isAt(leaf, place)).length !== 1),
      [],
    );
  });
  it('is one that there is', () => {
    assert.deepEqual(
      places.filter((place) => !leaves.some((leaf) => isAt(leaf, place))),
      [],
    );
  });
});

describe('unservedFields()', () => {
  const cases: [name: string, spec: Part<Spec> | undefined, expected: string[]][] = [
    ['nothing', undefined, []],
    [
      'a switch',
      { domain: { devices: { autoattachVSOCK: true } } },
      ['domain.devices.autoattachVSOCK VSOCK is not supported'],
    ],
    [
      'a switch that is off',
      { domain: { devices: { autoattachVSOCK: false }, cpu: { dedicatedCpuPlacement: false } } },
      [],
    ],
    [
      'processors of its own, for which its Pod asks for a node that has them',
      { domain: { cpu: { dedicatedCpuPlacement: true } } },
      [
        'domain.cpu.dedicatedCpuPlacement dedicated processors are not supported; the machine waits for a node with label kubevirt.io/cpumanager',
      ],
    ],
    [
      'an empty object',
      { domain: { devices: { downwardMetrics: {} } } },
      ['domain.devices.downwardMetrics downward metrics are not supported'],
    ],
    [
      'a host of a probe',
      { livenessProbe: { tcpSocket: { port: 22, host: 'web' } } },
      ['livenessProbe.tcpSocket.host probes ask the guest itself; their host has no effect'],
    ],
    ['an empty list', { domain: { devices: { gpus: [] } } }, []],
    [
      'an entry of a list',
      { domain: { devices: { disks: [{ name: 'a' }, { name: 'b', lun: {} }] } } },
      ['domain.devices.disks[1].lun disk b: lun is not supported; it is attached as a disk'],
    ],
    [
      'what is switched off',
      { domain: { devices: { disks: [{ name: 'a', blockSize: { matchVolume: { enabled: false } } }] } } },
      [],
    ],
  ];
  for (const [name, of, expected] of cases)
    it(name, () =>
      assert.deepEqual(
        unservedFields(of && partly<Spec>(of)).map(({ field, text }) => `${field} ${text}`),
        expected,
      ),
    );
});

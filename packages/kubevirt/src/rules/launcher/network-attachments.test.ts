import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { Interface, Network } from '../../kinds/kinds.ts';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import {
  definitionsOf,
  NETWORKS_ANNOTATION,
  networkStatusText,
  networksAnnotation,
  podInterfaceName,
  readDefinition,
} from './network-attachments.ts';

const vmiOf = (interfaces: Interface[], networks: Network[]) =>
  partly<VirtualMachineInstance>({
    metadata: { namespace: 'ns' },
    spec: { domain: { devices: { interfaces } }, networks },
  });

test('the launcher Pod names the networks that its guest is on as Multus wants them', () => {
  const made = networksAnnotation(
    vmiOf(
      [
        { name: 'default', masquerade: {} },
        { name: 'red', bridge: {}, macAddress: '02:00:00:00:00:07' },
        { name: 'far', bridge: {} },
        { name: 'gone', bridge: {}, state: 'absent' },
        { name: 'fast', sriov: {} },
        { name: 'first', bridge: {} },
      ],
      [
        { name: 'default', pod: {} },
        { name: 'red', multus: { networkName: 'wire' } },
        { name: 'far', multus: { networkName: 'other/wire' } },
        { name: 'gone', multus: { networkName: 'wire' } },
        { name: 'fast', multus: { networkName: 'wire' } },
        { name: 'first', multus: { networkName: 'wire', default: true } },
      ],
    ),
  );
  assert.deepEqual(JSON.parse(made ?? ''), [
    { name: 'wire', namespace: 'ns', mac: '02:00:00:00:00:07', interface: 'podb1f51a511f1' },
    { name: 'wire', namespace: 'other', interface: podInterfaceName('far') },
  ]);
  assert.deepEqual(definitionsOf({ [NETWORKS_ANNOTATION]: made ?? '' }), ['ns/wire', 'other/wire']);
  assert.equal(
    networksAnnotation(vmiOf([{ name: 'default', masquerade: {} }], [{ name: 'default', pod: {} }])),
    undefined,
  );
  for (const text of ['', '{', '7', '[7]', 'wire,other/wire'])
    assert.deepEqual(definitionsOf({ [NETWORKS_ANNOTATION]: text }), [], text);
});

test('network-status says nothing of a guest on the network of Pods alone', () => {
  const pod = { mac: '02:00:00:00:00:01' };
  assert.equal(networkStatusText([pod], '100.64.0.1'), '[]');
  const segment = { definition: 'ns/wire', podInterface: 'podb1f51a511f1' };
  assert.deepEqual(JSON.parse(networkStatusText([pod, { mac: '02:00:00:00:00:02', segment }], '100.64.0.1')), [
    { name: 'coracle', interface: 'eth0', ips: ['100.64.0.1'], mac: pod.mac, default: true, dns: {} },
    { name: 'ns/wire', interface: 'podb1f51a511f1', mac: '02:00:00:00:00:02', dns: {} },
  ]);
});

test('a definition is served when the plug-in that makes its network is a bridge', () => {
  const rows: readonly (readonly [config: string | undefined, problem: RegExp | undefined])[] = [
    ['{"type":"bridge"}', undefined],
    ['{"type":"cnv-bridge","bridge":"br1","ipam":{}}', undefined],
    ['{"plugins":[{"type":"bridge"},{"type":"tuning"}]}', undefined],
    ['{"plugins":[{"type":"cnv-bridge","macspoofchk":true}]}', undefined],
    ['{"plugins":[{"type":"macvlan"},{"type":"bridge"}]}', /type "macvlan": only networks of type bridge/],
    ['{"type":"ovs"}', /type "ovs": only networks of type bridge and cnv-bridge are served/],
    ['{"type":7}', /names no type/],
    ['[]', /names no type/],
    ['{"plugins":[]}', /names no type/],
    ['bridge', /not JSON/],
    ['', /no spec\.config/],
    [undefined, /no spec\.config/],
  ];
  for (const [config, problem] of rows) {
    const said = readDefinition({ spec: config === undefined ? {} : { config } } as never);
    if (problem) assert.match('problem' in said ? said.problem : '', problem);
    else assert.deepEqual(said, config?.includes('macspoofchk') ? { checksAddress: true } : {}, config ?? '');
  }
});

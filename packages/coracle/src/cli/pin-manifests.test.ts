import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { legacyFirmwareUuid } from '../../../kubevirt/src/rules/identity/firmware-identity.ts';
import { pinManifests } from './pin-manifests.ts';

const uuid = legacyFirmwareUuid('web');
const vm = (domain: string): string => `# exported by hand
kind: VirtualMachine   # a comment
apiVersion: kubevirt.io/v1
metadata: {name: web}
spec:
  template:
    spec:
      domain:${domain}
`;

describe('pinManifests()', () => {
  const rows: readonly [string, string, string][] = [
    [
      'a domain without firmware',
      vm('\n        # how much\n        memory: {guest: "64Mi"}\n        devices: {}'),
      vm(
        `\n        # how much\n        firmware:\n          uuid: ${uuid}\n        memory: {guest: "64Mi"}\n        devices: {}`,
      ),
    ],
    [
      'firmware without UUID',
      vm('\n        firmware:\n            serial: x # mine\n        devices: {}'),
      vm(`\n        firmware:\n            uuid: ${uuid}\n            serial: x # mine\n        devices: {}`),
    ],
    [
      'an empty UUID',
      vm('\n        firmware: {uuid: "", serial: x}'),
      vm(`\n        firmware: {uuid: "${uuid}", serial: x}`),
    ],
    ['empty firmware', vm('\n        firmware: {}'), vm(`\n        firmware: {"uuid": "${uuid}"}`)],
    [
      'firmware of nothing',
      vm('\n        firmware:\n        cpu: {}'),
      vm(`\n        firmware: {uuid: ${uuid}}\n        cpu: {}`),
    ],
    ['firmware null', vm('\n        firmware: null'), vm(`\n        firmware: {uuid: ${uuid}}`)],
    ['a flow map', vm(' {devices: {}}'), vm(` {"firmware": {"uuid": "${uuid}"}, devices: {}}`)],
    ['an empty domain', vm(' {}'), vm(` {"firmware": {"uuid": "${uuid}"}}`)],
    ['a machine that has one', vm(' {firmware: {uuid: mine}}'), vm(' {firmware: {uuid: mine}}')],
    ['another kind', 'kind: Pod\nmetadata: {name: web}\n', 'kind: Pod\nmetadata: {name: web}\n'],
    [
      'JSON',
      '{"kind":"VirtualMachine","metadata":{"name":"web"},"spec":{"template":{"spec":{"domain":{"devices":{}}}}}}',
      `{"kind":"VirtualMachine","metadata":{"name":"web"},"spec":{"template":{"spec":{"domain":{"firmware": {"uuid": "${uuid}"}, "devices":{}}}}}}`,
    ],
  ];
  for (const [name, before, after] of rows) {
    // S-618: `coracle identity pin` writes the UUID of the name into manifests and touches nothing else of them; bad
    //   input changes no file.
    it(`writes the UUID of ${name}, and nothing else`, () => {
      assert.equal(pinManifests(before, 'f').text, after);
      assert.deepEqual(pinManifests(after, 'f').machines, [], 'a second time changes nothing');
    });
  }

  // S-618
  it('goes through documents and lists, with comments between them', () => {
    const list = `apiVersion: v1
kind: List
items:
- kind: VirtualMachine
  metadata:
    name: web
  spec: &s
    template:
      spec:
        domain:
          # first
          devices: {}
- kind: ConfigMap
  metadata: {name: c}
---
# second
${vm(' {devices: {}}').replace('web', 'db')}`;
    const { text, machines } = pinManifests(list, 'f');
    assert.deepEqual(machines, ['web', 'db']);
    assert.equal(text.replaceAll(/ *firmware:\n *uuid: \S+\n|"firmware": \{[^}]*\}, /g, ''), list);
    assert.ok(text.includes(uuid) && text.includes(legacyFirmwareUuid('db')));
  });

  for (const [name, text, words] of [
    ['broken YAML', 'kind: [', /^f is not valid YAML: [^\n]+$/],
    ['text', 'hello', /^f holds a document that is not an object/],
    [
      'a machine without domain',
      'kind: VirtualMachine\nmetadata: {name: x}\n',
      /^f: VirtualMachine x has no domain of its own/,
    ],
    [
      'a domain that two machines share',
      'kind: List\nitems:\n- kind: VirtualMachine\n  metadata: {name: a}\n  spec: &s {template: {spec: {domain: {devices: {}}}}}\n- kind: VirtualMachine\n  metadata: {name: b}\n  spec: *s\n',
      /^f: .*alias/,
    ],
  ] as const)
    it(`refuses ${name} in one line`, () => assert.throws(() => pinManifests(text, 'f'), { message: words }));
});

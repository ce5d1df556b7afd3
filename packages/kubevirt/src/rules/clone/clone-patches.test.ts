import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyJsonPatch } from '../../../../apimachinery/src/patch/json-patch.ts';
import type { CloneSpec } from '../../kinds/kubevirt.ts';
import { CLOUD_INIT_INSTANCE } from '../identity/cloud-init-instance.ts';
import { legacyFirmwareUuid } from '../identity/firmware-identity.ts';
import { type CloneSource, clonePatches } from './clone-patches.ts';

const UUID = 'e9d8a4f0-7a3c-4f27-9a53-0d7c1f3f5a11';
const UID = 'clone-uid';
const UUID_PATH = '/spec/template/spec/domain/firmware/uuid';

interface Parts {
  readonly metadata?: object;
  readonly template?: object;
  readonly firmware?: object | undefined;
  readonly interfaces?: readonly object[];
}

const sourceOf = ({ metadata, template, firmware = { uuid: UUID, serial: 's' }, interfaces }: Parts): CloneSource =>
  ({
    metadata: { name: 'db', namespace: 'default', ...metadata },
    spec: {
      template: {
        ...(template && { metadata: template }),
        spec: {
          domain: {
            devices: { ...(interfaces && { interfaces }) },
            ...(Object.keys(firmware).length > 0 && { firmware }),
          },
        },
      },
    },
  }) as unknown as CloneSource;

const specOf = (more: Partial<CloneSpec>): CloneSpec => ({
  source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' },
  ...more,
});

/** The target as the restore would make it. */
function targetOf(parts: Parts, more: Partial<CloneSpec>) {
  const source = sourceOf(parts);
  const patches = clonePatches(source, { spec: specOf(more), uid: UID });
  const { metadata, spec } = applyJsonPatch(
    source,
    patches.map((text) => JSON.parse(text)),
  ) as CloneSource;
  const { domain } = spec.template.spec!;
  return {
    metadata,
    template: spec.template.metadata,
    firmware: domain.firmware,
    interfaces: domain.devices.interfaces,
  };
}

type Target = Partial<ReturnType<typeof targetOf>>;
const notes = (...keys: string[]): Record<string, string> => Object.fromEntries(keys.map((key) => [key, 'x']));

// S-592
describe('clonePatches()', () => {
  const cases: [name: string, parts: Parts, clone: Partial<CloneSpec>, target: Record<string, unknown>][] = [
    [
      'UUID and serial are blank, the rest of the firmware stays',
      { firmware: { uuid: UUID, serial: 's', bootloader: { bios: {} } } },
      {},
      { firmware: { uuid: '', serial: '', bootloader: { bios: {} } } },
    ],
    ['a serial that is asked for', {}, { newSMBiosSerial: 'new' }, { firmware: { uuid: '', serial: 'new' } }],
    ['a source without firmware', { firmware: {} }, {}, { firmware: { uuid: '', serial: '' } }],
    [
      'a serial for a source without firmware',
      { firmware: {} },
      { newSMBiosSerial: 'new' },
      { firmware: { uuid: '', serial: 'new' } },
    ],
    ['a firmware without UUID', { firmware: { serial: 's' } }, {}, { firmware: { uuid: '', serial: '' } }],
    [
      'addresses go, but for those that are asked for',
      {
        interfaces: [
          { name: 'a', macAddress: '02:00:00:00:00:01' },
          { name: 'b', macAddress: '02:00:00:00:00:02' },
          { name: 'c' },
          { name: 'd' },
        ],
      },
      { newMacAddresses: { b: '02:00:00:00:00:0b', d: '02:00:00:00:00:0d', toString: '02:00:00:00:00:0e', c: '' } },
      {
        interfaces: [
          { name: 'a' },
          { name: 'b', macAddress: '02:00:00:00:00:0b' },
          { name: 'c' },
          { name: 'd', macAddress: '02:00:00:00:00:0d' },
        ],
      },
    ],
    [
      'labels and annotations stay without filters',
      { metadata: { labels: notes('a'), annotations: notes('b') }, template: { labels: notes('c') } },
      {},
      {
        metadata: { name: 'db', namespace: 'default', labels: notes('a'), annotations: notes('b') },
        template: { labels: notes('c') },
      },
    ],
    [
      'filtered labels and annotations',
      { metadata: { labels: notes('a/b', 'a~c', 'd'), annotations: notes('e', 'f') } },
      { labelFilters: ['*', '!a*'], annotationFilters: ['e'] },
      { metadata: { name: 'db', namespace: 'default', labels: notes('d'), annotations: notes('e') } },
    ],
    [
      'filtered labels and annotations of the template',
      { template: { labels: notes('a', 'b'), annotations: notes('c', 'd') } },
      { template: { labelFilters: [], annotationFilters: ['!c', '*'] } },
      { template: { labels: {}, annotations: notes('d') } },
    ],
    [
      'what restore and creation write themselves is left to them',
      { metadata: { annotations: notes('restore.kubevirt.io/lastRestoreUID', 'coracle.dev/firmware-identity', 'a') } },
      { annotationFilters: [] },
      {
        metadata: {
          name: 'db',
          namespace: 'default',
          annotations: notes('restore.kubevirt.io/lastRestoreUID', 'coracle.dev/firmware-identity'),
        },
      },
    ],
    [
      'filters on nothing',
      {},
      { labelFilters: [], annotationFilters: ['a'], template: { labelFilters: [] } },
      { metadata: { name: 'db', namespace: 'default' }, template: undefined },
    ],
    [
      "the user's patches come after ours",
      { interfaces: [{ name: 'a', macAddress: '02:00:00:00:00:01' }] },
      {
        patches: [
          `{"op":"replace","path":"/spec/template/spec/domain/devices/interfaces/0/macAddress","value":"x"}`,
          `{"op":"add","path":"${UUID_PATH}","value":"u"}`,
        ],
      },
      { interfaces: [{ name: 'a', macAddress: 'x' }], firmware: { uuid: 'u', serial: '' } },
    ],
  ];
  for (const [name, parts, clone, expected] of cases) {
    it(name, () => {
      const target = targetOf(parts, clone);
      for (const [key, value] of Object.entries(expected)) assert.deepEqual(target[key as keyof Target], value, key);
      assert.equal((target.template as Target['metadata'])?.annotations?.[CLOUD_INIT_INSTANCE], undefined);
    });
  }

  const pin = (uuid: string): Partial<CloneSpec> => ({
    patches: [JSON.stringify({ op: 'add', path: UUID_PATH, value: uuid })],
  });
  const pinned: [name: string, parts: Parts, uuid: string, annotations: object][] = [
    ['no template metadata', {}, UUID, {}],
    ['no annotations', { template: { labels: notes('a') } }, UUID, {}],
    ['annotations', { template: { annotations: notes('a') } }, UUID, notes('a')],
    [
      'that of a clone that was made distinct already',
      { template: { annotations: notes(CLOUD_INIT_INSTANCE) } },
      UUID,
      {},
    ],
    ['another spelling of the UUID', {}, UUID.toUpperCase(), {}],
    ['the UUID that follows from the name', { firmware: {} }, legacyFirmwareUuid('db'), {}],
  ];
  for (const [name, parts, uuid, annotations] of pinned) {
    // S-593
    it(`tells cloud-init apart when the user keeps the UUID: ${name}`, () => {
      const { template, firmware } = targetOf(parts, pin(uuid));
      assert.equal(firmware?.uuid, uuid);
      assert.deepEqual((template as Target['metadata'])?.annotations, { ...annotations, [CLOUD_INIT_INSTANCE]: UID });
    });
  }

  it("leaves the user's patches that do not apply to the restore", () => {
    const patches = ['{"op":"remove","path":"/spec/none"}', 'no JSON'];
    const made = clonePatches(sourceOf({}), { spec: specOf({ patches }), uid: UID });
    assert.deepEqual(made.slice(-2), patches);
  });
});

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { VirtualMachine } from '../../api/kinds/kubevirt/kubevirt.ts';
import { firmwareUuidFor, legacyFirmwareUuid, uuidV5, withNewIdentity } from './firmware-identity.ts';
import { sha1 } from './sha1.ts';

const hex = (bytes: Uint8Array): string => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');

describe('sha1()', () => {
  it('agrees with the platform on any input', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        assert.equal(hex(sha1(bytes)), createHash('sha1').update(bytes).digest('hex'));
      }),
      { numRuns: 200 },
    );
  });
});

describe('uuidV5()', () => {
  it('gives the UUID of the RFC 4122 erratum for www.example.com in the DNS namespace', () => {
    assert.equal(
      uuidV5('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com'),
      '2ed6657d-e927-568b-95e1-2665a8aea6a2',
    );
  });
});

describe('firmwareUuidFor()', () => {
  const vm = (name: string, uuid?: string): VirtualMachine => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'a' },
    spec: { template: { spec: { domain: { devices: {}, ...(uuid !== undefined && { firmware: { uuid } }) } } } },
  });

  it('keeps the written UUID', () => assert.equal(firmwareUuidFor(vm('x', 'my-uuid')), 'my-uuid'));
  it('falls back to the UUID of the name, whatever the namespace', () => {
    assert.equal(firmwareUuidFor(vm('x')), legacyFirmwareUuid('x'));
    assert.equal(firmwareUuidFor(vm('x', '')), legacyFirmwareUuid('x'));
    assert.notEqual(legacyFirmwareUuid('x'), legacyFirmwareUuid('y'));
    assert.match(legacyFirmwareUuid('x'), /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

describe('withNewIdentity()', () => {
  const ids = (): (() => string) => {
    let n = 0;
    return () => `id-${++n}`;
  };
  it('fills what is missing and keeps the rest', () => {
    assert.deepEqual(withNewIdentity(undefined, ids()), { uuid: 'id-1', serial: 'id-2' });
    assert.deepEqual(withNewIdentity({ uuid: 'u', serial: '' }, ids()), { uuid: 'u', serial: 'id-1' });
    assert.deepEqual(withNewIdentity({ serial: 's', bootloader: { efi: {} } }, ids()), {
      serial: 's',
      bootloader: { efi: {} },
      uuid: 'id-1',
    });
  });
});
